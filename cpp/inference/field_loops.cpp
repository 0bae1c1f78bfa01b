// Compiled once for each instruction set: see inference/field_loops.hpp.
#include "inference/field_loops.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/parallel.hpp"
#include "base/simd.hpp"

namespace mercer::MERCER_ARCH {
namespace {

typedef uint32_t UVec __attribute__((vector_size(kVectorBytes)));
typedef uint8_t Bytes __attribute__((vector_size(kVectorBytes / 4)));
constexpr int L = kLanes<float>;

// ---------------------------------------------------------------------------------------------- random numbers

inline UVec lanes_from(uint32_t first) {
  UVec v;
  for (int i = 0; i < L; ++i) v[i] = first + uint32_t(i);
  return v;
}
// Two rounds of a 32-bit finaliser, each with its half of the row's key, as odd multiples of 2^−24 in (0, 1): what has
// probability 0 is never drawn.
inline Vec<float> uniforms(UVec counter, UVec low, UVec high) {
  UVec x = counter ^ low;
  x ^= x >> 16;
  x *= 0x21f0aaadu;
  x ^= x >> 15;
  x *= 0xd35a2d97u;
  x ^= x >> 15;
  x += high;
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  x ^= x >> 16;
  const UVec bits = (x >> 9) | 0x3f800000u;
  Vec<float> value;
  std::memcpy(&value, &bits, sizeof value);
  return value - (1.0f - 0x1p-24f);
}
// 1 + exp(−f): the reciprocal of σ(f).
inline Vec<float> odds_of(Vec<float> f) {
  Vec<float> z = -f;
  z = z > 80.0f ? splat(80.0f) : z;
  return vexp(z) + 1.0f;
}

// σ of `count` fields of one row, from column `first` on, and draws of it. Fields must have room for whole vectors.
inline void draw_row(const float* fields, int64_t count, int64_t first, uint64_t key, float* probabilities,
                     uint8_t* states) {
  const UVec low = UVec{} + uint32_t(key), high = UVec{} + uint32_t(key >> 32);
  for (int64_t j = 0; j < count; j += L) {
    const int here = int(std::min<int64_t>(L, count - j));
    const Vec<float> f = here == L ? load(fields + j) : load_some(fields + j, here, 0.0f), odds = odds_of(f);
    if (probabilities) {
      const Vec<float> p = 1.0f / odds;
      std::memcpy(probabilities + j, &p, size_t(here) * sizeof(float));
    }
    if (states) {
      const UVec one = UVec(uniforms(lanes_from(uint32_t(first + j)), low, high) * odds < 1.0f) & 1u;
      const Bytes drawn = __builtin_convertvector(one, Bytes);
      std::memcpy(states + j, &drawn, size_t(here));
    }
  }
}

void sample(const float* fields, int64_t n, int64_t m, float scale, uint64_t key, int64_t first_row,
            float* probabilities, uint8_t* states, int threads) {
  constexpr int64_t kRows = 32;
  in_parallel((n + kRows - 1) / kRows, threads, [&](int64_t part) {
    AlignedVector<float> scaled(size_t(m) + L);
    for (int64_t i = part * kRows; i < std::min(n, (part + 1) * kRows); ++i) {
      const float* row = fields + i * m;
      for (int64_t j = 0; j < m; ++j) scaled[size_t(j)] = scale * row[j];
      draw_row(scaled.data(), m, 0, row_key(key, first_row + i), probabilities ? probabilities + i * m : nullptr,
               states ? states + i * m : nullptr);
    }
  });
}

// ---------------------------------------------------------------------------------------------- bits times a matrix

constexpr int kBits = 5, kEntries = 1 << kBits;  // of a group
constexpr int kGroups = 4;                       // groups whose codes are kept together
constexpr int kSpan = kBits * kGroups;           // units of a block of groups
constexpr int kPanel = 32;                       // columns that are summed together
constexpr int kWide = kPanel / L;
constexpr int64_t kRowBlock = 512;
constexpr int64_t kAhead = 2;  // blocks whose rows are fetched before they are wanted

// The five-bit codes of rows of bits, block after block of groups; rows without a bit in a block are left out.
struct Codes {
  struct Entry {
    int32_t row;             // where its sums begin, within its block of rows
    uint16_t sums[kGroups];  // where the sum of each group begins
  };
  int64_t n, blocks, row_blocks;
  std::vector<Entry> entries;
  std::vector<int64_t> starts;  // of every block of groups and of rows

  Codes(int64_t rows, int64_t units)
      : n(rows), blocks((units + kSpan - 1) / kSpan), row_blocks((rows + kRowBlock - 1) / kRowBlock) {
    starts.reserve(size_t(blocks * row_blocks + 1));
    entries.reserve(size_t(blocks * n));
  }
  // Takes the codes of a block for all rows: four bytes each.
  void append(const uint32_t* codes) {
    for (int64_t i = 0; i < n; ++i) {
      if (i % kRowBlock == 0) starts.push_back(int64_t(entries.size()));
      if (!codes[i]) continue;
      Entry entry;
      entry.row = int32_t(i % kRowBlock * kPanel);
      for (int g = 0; g < kGroups; ++g)
        entry.sums[g] = uint16_t((g * kEntries + int(codes[i] >> (8 * g) & 31)) * kPanel);
      entries.push_back(entry);
    }
  }
  void finish() { starts.push_back(int64_t(entries.size())); }
};

// All sums of five rows of W, in the columns of a panel.
void make_sums(const float* w, int64_t stride, int64_t rows, int64_t columns, float scale, float* sums) {
  for (int v = 0; v < kWide; ++v) {
    const int here = int(std::clamp<int64_t>(columns - v * L, 0, L));
    Vec<float> row[kBits];
    for (int b = 0; b < kBits; ++b) {
      row[b] = splat(0.0f);
      if (b < rows && here) {
        const float* at = w + b * stride + v * L;
        row[b] = scale * (here == L ? load(at) : load_some(at, here, 0.0f));
      }
    }
    Vec<float> low[4] = {splat(0.0f), row[0], row[1], row[0] + row[1]};
#pragma GCC unroll 8
    for (int high = 0; high < kEntries / 4; ++high) {
      Vec<float> sum = splat(0.0f);
      if (high & 1) sum += row[2];
      if (high & 2) sum += row[3];
      if (high & 4) sum += row[4];
#pragma GCC unroll 4
      for (int e = 0; e < 4; ++e) store(sums + (4 * high + e) * kPanel + v * L, sum + low[e]);
    }
  }
}

// acc[row] += Σ_g sums[g][code of group g] for rows that have a bit in the block.
inline void add_sums(const Codes::Entry* entry, const Codes::Entry* end, const float* sums, float* acc) {
  for (; entry != end; ++entry) {
    float* to = acc + entry->row;
    const float *a = sums + entry->sums[0], *b = sums + entry->sums[1], *c = sums + entry->sums[2],
                *d = sums + entry->sums[3];
#pragma GCC unroll 4
    for (int v = 0; v < kWide; ++v)
      store(to + v * L, load(to + v * L) + ((load(a + v * L) + load(b + v * L)) + (load(c + v * L) + load(d + v * L))));
  }
}

// Fetches what make_sums will take some blocks later. Rows are far apart, so that the processor does not foresee them.
inline void fetch(const float* w, int64_t stride, int64_t rows, int64_t columns) {
  for (int64_t b = 0; b < rows; ++b) {
    const char* row = reinterpret_cast<const char*>(w + (kAhead * kSpan + b) * stride);
    const int64_t last = columns * int64_t(sizeof(float)) - 1;
    __builtin_prefetch(row, 0, 3);
    __builtin_prefetch(row + std::min<int64_t>(64, last), 0, 3);
    __builtin_prefetch(row + last, 0, 3);
  }
}

// For every panel of columns and block of rows of codes: the product, handed to `use(row, rows, column, columns, acc)`.
template <class Use>
void bit_product(const Codes& codes, int64_t k, const float* w, int64_t m, float scale, int threads, Use use) {
  const int64_t panels = (m + kPanel - 1) / kPanel;
  in_parallel(panels * codes.row_blocks, threads, [&](int64_t part) {
    const int64_t j = part % panels * kPanel, row_block = part / panels, i = row_block * kRowBlock;
    const int64_t rows = std::min(kRowBlock, codes.n - i), columns = std::min<int64_t>(kPanel, m - j);
    thread_local AlignedVector<float> acc, sums;
    acc.assign(size_t(rows) * kPanel, 0.0f);
    sums.resize(size_t(kGroups) * kEntries * kPanel);
    for (int64_t block = 0; block < codes.blocks; ++block) {
      const int64_t* start = codes.starts.data() + block * codes.row_blocks + row_block;
      if (start[0] == start[1]) continue;
      for (int g = 0; g < kGroups; ++g) {
        const int64_t unit = block * kSpan + g * kBits;
        fetch(w + unit * m + j, m, std::clamp<int64_t>(k - unit - kAhead * kSpan, 0, kBits), columns);
        make_sums(w + unit * m + j, m, std::clamp<int64_t>(k - unit, 0, kBits), columns, scale,
                  sums.data() + g * kEntries * kPanel);
      }
      add_sums(codes.entries.data() + start[0], codes.entries.data() + start[1], sums.data(), acc.data());
    }
    use(i, rows, j, columns, acc.data());
  });
}

Codes make_codes(const uint8_t* x, int64_t n, int64_t k) {
  Codes codes(n, k);
  std::vector<uint32_t> block_codes(static_cast<size_t>(n));
  uint8_t padded[24] = {};
  for (int64_t first = 0; first < k; first += kSpan) {
    for (int64_t i = 0; i < n; ++i) {
      const uint8_t* at = x + i * k + first;
      if (first + 24 > k) {
        std::memset(padded, 0, sizeof padded);
        std::memcpy(padded, at, size_t(std::min<int64_t>(kSpan, k - first)));
        at = padded;
      }
      uint32_t bits = 0;
      for (int b = 0; b < 3; ++b) {  // eight bytes to eight bits by one product
        uint64_t eight;
        std::memcpy(&eight, at + 8 * b, 8);
        bits |= uint32_t((eight * 0x0102040810204080ull) >> 56) << (8 * b);
      }
      block_codes[size_t(i)] = (bits & 31) | (bits >> 5 & 31) << 8 | (bits >> 10 & 31) << 16 | (bits >> 15 & 31) << 24;
    }
    codes.append(block_codes.data());
  }
  codes.finish();
  return codes;
}
// The same of the columns of bits: rows are taken in groups.
Codes make_column_codes(const uint8_t* x, int64_t n, int64_t k) {
  Codes codes(k, n);
  std::vector<uint32_t> block_codes(static_cast<size_t>(k));
  for (int64_t first = 0; first < n; first += kSpan) {
    std::fill(block_codes.begin(), block_codes.end(), 0u);
    for (int b = 0; b < kSpan && first + b < n; ++b) {
      const uint8_t* row = x + (first + b) * k;
      const int shift = b / kBits * 8 + b % kBits;
      for (int64_t i = 0; i < k; ++i) block_codes[size_t(i)] |= uint32_t(row[i]) << shift;
    }
    codes.append(block_codes.data());
  }
  codes.finish();
  return codes;
}

void half_sweep(const HalfSweep& t, int threads) {
  bit_product(make_codes(t.x, t.n, t.k), t.k, t.w, t.m, t.beta, threads,
              [&](int64_t first, int64_t rows, int64_t j, int64_t columns, float* acc) {
                float bias[kPanel] = {};
                if (t.bias) std::copy(t.bias + j, t.bias + j + columns, bias);
                for (int64_t i = 0; i < rows; ++i) {
                  float* row = acc + i * kPanel;
                  for (int v = 0; v < kWide; ++v) store(row + v * L, load(row + v * L) + load(bias + v * L));
                  const int64_t at = (first + i) * t.m + j;
                  if (t.fields) std::copy(row, row + columns, t.fields + at);
                  if (t.probabilities || t.states)
                    draw_row(row, columns, j, row_key(t.key, t.first_row + first + i),
                             t.probabilities ? t.probabilities + at : nullptr, t.states ? t.states + at : nullptr);
                }
              });
}

void outer(const uint8_t* x, int64_t n, int64_t k, const float* dense, int64_t m, float scale, float* out,
           int threads) {
  bit_product(make_column_codes(x, n, k), n, dense, m, scale, threads,
              [&](int64_t first, int64_t rows, int64_t j, int64_t columns, float* acc) {
                for (int64_t i = 0; i < rows; ++i) {
                  float* to = out + (first + i) * m + j;
                  for (int64_t c = 0; c < columns; ++c) to[c] += acc[i * kPanel + c];
                }
              });
}

// ---------------------------------------------------------------------------------------------- sums of log(1 + e^f)

// log(1 + e^f) = max(f, 0) + log(1 + e^−|f|). Factors 1 + e^−|f| ≤ 2 are multiplied, 64 of them at a time, and one
// logarithm is taken of the product.
double softplus_sum(const float* a, const float* b, int64_t m, float beta) {
  double total = 0;
  const Vec<float> zero = splat(0.0f);
  for (int64_t j = 0; j < m;) {
    Vec<float> sum = zero, product = splat(1.0f);
    for (int step = 0; step < 64 && j < m; ++step, j += L) {
      const int here = int(std::min<int64_t>(L, m - j));
      const auto at = [&](const float* p) { return here == L ? load(p + j) : load_some(p + j, here, 0.0f); };
      Vec<float> f = beta * at(a);
      if (b) f = at(a) + beta * (at(b) - at(a));
      const Vec<float> positive = vmax<float>(f, zero), lanes = vexp(f - 2.0f * positive);
      sum += positive;
      product *= here == L ? lanes + 1.0f : (first_lanes<float>(here) ? lanes + 1.0f : splat(1.0f));
    }
    float parts[2 * L];
    store(parts, sum);
    store(parts + L, product);
    for (int i = 0; i < L; ++i) total += double(parts[i]) + std::log(double(parts[L + i]));
  }
  return total;
}

void softplus_sums(const float* a, const float* b, int64_t n, int64_t m, float beta, double* out, int threads) {
  constexpr int64_t kRows = 32;
  in_parallel((n + kRows - 1) / kRows, threads, [&](int64_t part) {
    for (int64_t i = part * kRows; i < std::min(n, (part + 1) * kRows); ++i)
      out[i] = softplus_sum(a + i * m, b ? b + i * m : nullptr, m, beta);
  });
}

// ---------------------------------------------------------------------------------------------- pairwise fields

// One sweep over all units in their order; a vector holds one unit of several chains.
void spin_sweep(const SpinChains& t, int threads) {
  in_parallel((t.n + L - 1) / L, threads, [&](int64_t part) {
    const int64_t first = part * L;
    const int here = int(std::min<int64_t>(L, t.n - first));
    AlignedVector<float> x(size_t(t.size) * L);
    UVec low, high;
    for (int lane = 0; lane < L; ++lane) {
      const int64_t chain = first + std::min(lane, here - 1);
      const uint64_t key = row_key(t.key, t.first_row + chain);
      low[lane] = uint32_t(key);
      high[lane] = uint32_t(key >> 32);
      for (int64_t i = 0; i < t.size; ++i)
        x[size_t(i * L + lane)] = t.lo + t.gain * float(t.states[chain * t.size + i]);
    }
    for (int64_t turn = 0; turn < t.size; ++turn) {
      const int64_t i = t.backward ? t.size - 1 - turn : turn;
      Vec<float> f;
      if (t.bias_stride)
        for (int lane = 0; lane < L; ++lane) f[lane] = t.bias[(first + std::min(lane, here - 1)) * t.bias_stride + i];
      else
        f = splat(t.bias[i]);
      for (int64_t e = t.starts[i]; e < t.starts[i + 1]; ++e)
        f += t.weights[e] * load(x.data() + int64_t(t.neighbours[e]) * L);
      const Vec<float> u = uniforms(UVec{} + uint32_t(i), low, high);
      const Vec<float> drawn = u * odds_of(t.beta * t.gain * f) < 1.0f ? splat(t.lo + t.gain) : splat(t.lo);
      store(x.data() + i * L, drawn);
    }
    for (int lane = 0; lane < here; ++lane)
      for (int64_t i = 0; i < t.size; ++i)
        t.states[(first + lane) * t.size + i] = x[size_t(i * L + lane)] > t.lo + 0.5f * t.gain;
  });
}

// ---------------------------------------------------------------------------------------------- topics

// p(z = k) ∝ (n_wk + β) (n_mk + α_k) / (n_k + β W), the word itself left out.
void topic_sweep(const TopicCorpus& t) {
  const int64_t stride = t.stride;
  const float mass = t.beta * float(t.n_words);
  AlignedVector<float> inverse(size_t(stride), 0.0f), p(static_cast<size_t>(stride)), prior(size_t(stride), 0.0f);
  for (int64_t k = 0; k < t.k; ++k) {
    inverse[size_t(k)] = 1.0f / (t.totals[k] + mass);
    prior[size_t(k)] = t.alpha[k];
  }
  for (int64_t m = 0; m < t.documents; ++m) {
    float* document = t.by_document + m * stride;
    const uint64_t key = row_key(t.key, m);
    for (int64_t i = t.offsets[m]; i < t.offsets[m + 1]; ++i) {
      float* word = t.by_word + int64_t(t.words[i]) * stride;
      const int32_t old = t.topics[i];
      word[old] -= 1.0f;
      document[old] -= 1.0f;
      t.totals[old] -= 1.0f;
      inverse[size_t(old)] = 1.0f / (t.totals[old] + mass);
      Vec<float> sum = splat(0.0f);
      for (int64_t k = 0; k < stride; k += L) {
        const Vec<float> v =
            (load(word + k) + t.beta) * (load(document + k) + load(prior.data() + k)) * load(inverse.data() + k);
        store(p.data() + k, v);
        sum += v;
      }
      float left = float(mixed_counter(key + uint64_t(i)) >> 40) * 0x1p-24f * mercer::MERCER_ARCH::sum<float>(sum);
      int64_t k = 0;
      for (; k + L < stride; k += L) {  // whole vectors first
        const float part = mercer::MERCER_ARCH::sum<float>(load(p.data() + k));
        if (left < part) break;
        left -= part;
      }
      while (k + 1 < t.k && left >= p[size_t(k)]) left -= p[size_t(k++)];
      t.topics[i] = int32_t(k);
      word[k] += 1.0f;
      document[k] += 1.0f;
      t.totals[k] += 1.0f;
      inverse[size_t(k)] = 1.0f / (t.totals[k] + mass);
    }
  }
}

}  // namespace

template <> const FieldLoops& table<FieldLoops>() {
  static constexpr FieldLoops loops = {
      .half_sweep = half_sweep,
      .sample = sample,
      .outer = outer,
      .softplus_sums = softplus_sums,
      .spin_sweep = spin_sweep,
      .topic_sweep = topic_sweep,
  };
  return loops;
}

}  // namespace mercer::MERCER_ARCH
