// How each format is read: from the bytes of a record to a label, a weight and hashed features. See io/readers.hpp for
// what their hashes are.
#include "io/readers.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/arrays.hpp"
#include "base/names.hpp"

namespace mercer {

namespace {

constexpr int64_t kept_problems = 10;
constexpr std::string_view header_mark = "\x01header";  // the line of a gap that names the columns
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

// A piece of a file in a message: short, and printable whatever the bytes are.
std::string shown(std::string_view text) {
  std::string out = "'";
  for (char c : text.substr(0, 30)) {
    char escaped[8];
    if (uint8_t(c) < 0x20 || c == 0x7F) {
      std::snprintf(escaped, sizeof escaped, "\\x%02x", unsigned(uint8_t(c)));
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + (text.size() > 30 ? "…'" : "'");
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size() && i < 20; ++i) out += (i ? ", " : "") + names[i];
  return names.size() > 20 ? out + ", …" : out;
}

size_t first_place(std::string_view text, char c, size_t from) {
  if (from >= text.size()) return RecordSplitter::npos;
  const void* hit = std::memchr(text.data() + from, c, text.size() - from);
  return hit ? size_t(static_cast<const char*>(hit) - text.data()) : RecordSplitter::npos;
}

bool is_space(char c) { return c == ' ' || c == '\t'; }

bool is_blank(std::string_view text) {
  for (char c : text)
    if (!is_space(c)) return false;
  return true;
}

// Line ends as Python's universal newlines count them.
int64_t count_lines(std::string_view text) {
  if (text.find('\n') == std::string_view::npos && text.find('\r') == std::string_view::npos) return 0;
  int64_t n = 0;
  for (size_t i = 0; i < text.size(); ++i)
    n += text[i] == '\n' || (text[i] == '\r' && !(i + 1 < text.size() && text[i + 1] == '\n'));
  return n;
}

std::string_view without_line_end(std::string_view text) {
  if (!text.empty() && text.back() == '\n')
    text.remove_suffix(1);
  else if (text.empty() || text.back() != '\r')
    return text;
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  return text;
}

// A number as the name of a class: 1, +1, 1.0 and 01 are one class, "1". Other text is its own name.
std::string_view number_name(std::string_view text, std::string& scratch) {
  const std::string_view digits = text.substr(!text.empty() && text.front() == '-');
  if (!digits.empty() && digits.size() <= 15 && (digits.front() != '0' || text == "0") &&
      std::all_of(digits.begin(), digits.end(), is_digit))
    return text;
  double value;
  if (!whole_number(text, value) || !std::isfinite(value)) return text;
  if (value != std::floor(value) || std::fabs(value) >= 9007199254740992.0) return scratch = shortest_number(value);
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.0f", value == 0 ? 0.0 : value);
  return scratch = buffer;
}

// Where a name in Vowpal Wabbit's format ends: at a space, a tab, a colon or a bar.
const char* vw_name_end(const char* p, const char* end, const char* readable) {
#if defined(__SSE2__)
  const __m128i space = _mm_set1_epi8(' '), tab = _mm_set1_epi8('\t'), colon = _mm_set1_epi8(':'),
                bar = _mm_set1_epi8('|');
  while (readable - p >= 16 && p < end) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i hit = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(x, space), _mm_cmpeq_epi8(x, tab)),
                                     _mm_or_si128(_mm_cmpeq_epi8(x, colon), _mm_cmpeq_epi8(x, bar)));
    const int mask = _mm_movemask_epi8(hit);
    if (mask) return std::min(p + __builtin_ctz(unsigned(mask)), end);
    p += 16;
  }
#else
  (void)readable;
#endif
  while (p < end && *p != ' ' && *p != '\t' && *p != ':' && *p != '|') ++p;
  return std::min(p, end);
}

}  // namespace

// ---------------------------------------------------------------------------------------------- records

void RecordSplitter::start(std::string_view chunk, bool last) {
  chunk_ = chunk;
  last_ = last;
  size_t* const known[] = {&newline_, &return_, &quote_};
  const char wanted[] = {'\n', '\r', '"'};
  for (int i = 0; i < 3; ++i) *known[i] = first_place(chunk, wanted[i], 0);
}

size_t RecordSplitter::next(char c, size_t from, size_t& known) const {
  if (known < from) known = first_place(chunk_, c, from);
  return known;
}

// A line end at `place`: where it is over, or npos if the next chunk has to say whether "\r" is all of it.
size_t RecordSplitter::line_end(size_t place) {
  if (chunk_[place] == '\r') {
    if (place + 1 == chunk_.size() && !last_) {
      state_ = State::after_return;
      within_ = true;
      return npos;
    }
    if (place + 1 < chunk_.size() && chunk_[place + 1] == '\n') ++place;
  }
  state_ = State::field_start;
  within_ = false;
  return place + 1;
}

size_t RecordSplitter::find(size_t from) {
  if (state_ == State::after_return) {
    if (from == chunk_.size() && !last_) return npos;
    state_ = State::field_start;
    within_ = false;
    return from + (from < chunk_.size() && chunk_[from] == '\n');
  }
  if (from == chunk_.size()) return npos;
  const size_t end = std::min(next('\n', from, newline_), next('\r', from, return_));
  if (quotes_ && (within_ || end == npos || next('"', from, quote_) < end)) return walk(from);
  return end == npos ? npos : line_end(end);
}

size_t RecordSplitter::walk(size_t from) {
  size_t i = from;
  while (i < chunk_.size()) {
    const char c = chunk_[i];
    if (state_ == State::quoted) {
      i = next('"', i, quote_);
      if (i == npos) break;
      state_ = State::after_quote;
    } else if (c == '"' && state_ != State::unquoted) {
      state_ = State::quoted;
    } else if (c == '\n' || c == '\r') {
      return line_end(i);
    } else {
      // Spaces before a quote belong to no cell.
      if (c == delimiter_)
        state_ = State::field_start;
      else if (!(state_ == State::field_start && is_space(c)))
        state_ = State::unquoted;
    }
    ++i;
  }
  within_ = true;
  return npos;
}

// ---------------------------------------------------------------------------------------------- labels

void LabelTable::clear() {
  slots_.assign(64, -1);
  before_ = -1;
}

int32_t LabelTable::number(std::string_view name, std::vector<std::string>& names) {
  if (before_ >= 0 && names[size_t(before_)] == name) return before_;
  if (2 * (names.size() + 1) > slots_.size()) {
    slots_.assign(4 * slots_.size(), -1);
    for (size_t k = 0; k < names.size(); ++k) {
      size_t i = fast_hash(names[k]) & (slots_.size() - 1);
      while (slots_[i] >= 0) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = int32_t(k);
    }
  }
  size_t i = fast_hash(name) & (slots_.size() - 1);
  for (; slots_[i] >= 0; i = (i + 1) & (slots_.size() - 1))
    if (names[size_t(slots_[i])] == name) return before_ = slots_[i];
  slots_[i] = before_ = int32_t(names.size());
  names.emplace_back(name);
  return before_;
}

// ---------------------------------------------------------------------------------------------- sets of hashes

void HashSet::add(uint64_t hash) {
  if (contains(hash)) return;
  if (size_ >= most) {
    full_ = true;
    std::vector<uint64_t>().swap(slots_);
    return;
  }
  ++size_;
  if (!hash) {
    has_zero_ = true;
    return;
  }
  if (2 * (size_ + 1) > slots_.size()) {
    std::vector<uint64_t> before(std::max<size_t>(64, 4 * slots_.size()), 0);
    before.swap(slots_);
    for (const uint64_t held : before)
      if (held) {
        size_t i = held & (slots_.size() - 1);
        while (slots_[i]) i = (i + 1) & (slots_.size() - 1);
        slots_[i] = held;
      }
  }
  size_t i = hash & (slots_.size() - 1);
  while (slots_[i]) i = (i + 1) & (slots_.size() - 1);
  slots_[i] = hash;
}

bool HashSet::contains(uint64_t hash) const {
  if (!hash) return has_zero_;
  if (slots_.empty()) return false;
  size_t i = hash & (slots_.size() - 1);
  for (; slots_[i]; i = (i + 1) & (slots_.size() - 1))
    if (slots_[i] == hash) return true;
  return false;
}

std::vector<uint64_t> HashSet::sorted() const {
  std::vector<uint64_t> out;
  if (has_zero_) out.push_back(0);
  for (const uint64_t hash : slots_)
    if (hash) out.push_back(hash);
  std::sort(out.begin(), out.end());
  return out;
}

// ---------------------------------------------------------------------------------------------- the reader

ExampleReader::ExampleReader(ReaderSettings settings)
    : settings_(std::move(settings)),
      analyzer_(settings_.text, settings_.strings),
      splitter_(settings_.format == FileFormat::csv, settings_.separator) {
  for (const uint64_t hash : settings_.known) known_.insert(hash);
}

Examples ExampleReader::feed(std::string_view chunk, bool last) {
  require(!error_, "reading ended with an error");
  require(!finished_, "the last chunk has been fed already");
  block_ = Examples();
  gaps_.clear();
  block_.hashes.reserve(n_hashes_);  // as many as the block before had
  labels_.clear();
  splitter_.start(chunk, last);
  size_t from = 0;
  while (!done()) {
    const size_t end = splitter_.find(from);
    if (end == RecordSplitter::npos) break;
    if (pending_.empty()) {
      readable_ = chunk.data() + chunk.size();
      record(chunk.substr(from, end - from));
    } else {
      pending_.append(chunk.substr(from, end - from));
      readable_ = pending_.data() + pending_.size();
      record(pending_);
      pending_.clear();
    }
    from = end;
  }
  if (!done()) {
    pending_.append(chunk.substr(from));
    if (last && !pending_.empty()) {
      readable_ = pending_.data() + pending_.size();
      record(pending_);
    }
  }
  if (last || done()) std::string().swap(pending_);
  finished_ = last;
  n_hashes_ = block_.hashes.size();
  if (settings_.format != FileFormat::svmlight) block_.copy_features(settings_.copies);
  block_.documents =
      settings_.format == FileFormat::text || (resolved_ && resolved_->columns.empty() && !resolved_->rest);
  return std::move(block_);
}

void ExampleReader::record(std::string_view bytes) {
  line_ = next_line_;
  const std::string_view line = without_line_end(bytes);
  next_line_ += 1 + (settings_.format == FileFormat::csv ? count_lines(line) : 0);
  const int64_t before = n_examples_;
  const bool begun = resolved_.has_value();
  try {
    parse(line_ == 1 && line.substr(0, 3) == byte_order_mark ? line.substr(3) : line);
    if (settings_.keep_lines && n_examples_ == before) gap(begun || !resolved_ ? line : header_mark);
  } catch (const Malformed& problem) {
    roll_back();
    std::string what =
        problem.column > 0 ? "column " + std::to_string(problem.column) + ": " + problem.what : problem.what;
    if (!settings_.skip_malformed || problem.column < 0) {
      error_ = Problem{line_, std::move(what)};
    } else {
      if (++n_skipped_ <= kept_problems) skipped_.push_back({line_, std::move(what)});
      if (settings_.keep_lines) gap(std::string_view());
    }
  }
}

// A blank line, a comment (which comes back) or the header.
void ExampleReader::gap(std::string_view line) {
  const bool kept = settings_.format == FileFormat::svmlight || line == header_mark;
  gaps_.push_back({block_.size(), kept ? std::string(line) : std::string()});
}

void ExampleReader::parse(std::string_view line) {
  labelled_ = false;
  switch (settings_.format) {
    case FileFormat::text: return parse_text(line);
    case FileFormat::vw: return parse_vw(line);
    case FileFormat::svmlight: return parse_svmlight(line);
    case FileFormat::csv: return parse_csv(line);
    case FileFormat::jsonl: return parse_jsonl(line);
  }
}

void ExampleReader::roll_back() {
  block_.hashes.resize(size_t(block_.indptr.back()));
  if (!block_.values.empty()) block_.values.resize(block_.hashes.size());
}

void ExampleReader::set_label(std::string_view name) {
  if (name.empty()) return;
  if (settings_.numeric) return set_number_label(name);
  label_ = name;
  labelled_ = true;
}

void ExampleReader::set_number_label(std::string_view text) {
  if (settings_.numeric) {
    if (!whole_number(text, target_) || !std::isfinite(target_))
      throw Malformed{"expected a number as target, found " + shown(text)};
    labelled_ = true;
  } else {
    label_ = number_name(text, label_scratch_);
    labelled_ = true;
  }
}

void ExampleReader::finish(double weight) {
  if (!labelled_ && settings_.label_required) throw Malformed{"expected a label"};
  const size_t n = size_t(block_.size());
  if (settings_.numeric) {
    block_.targets.push_back(labelled_ ? target_ : std::numeric_limits<double>::quiet_NaN());
  } else {
    if (labelled_ && label_.find('\0') != label_.npos)  // an array of NumPy would lose it
      throw Malformed{"expected a label without NUL bytes, found " + shown(label_) + " (a file in UTF-16?)"};
    block_.labels.push_back(labelled_ ? labels_.number(label_, block_.label_names) : -1);
  }
  if (weight != 1 && block_.weights.empty()) block_.weights.assign(n, 1.0f);
  if (weight != 1 || !block_.weights.empty()) block_.weights.push_back(float(weight));
  block_.indptr.push_back(int64_t(block_.hashes.size()));
  ++n_examples_;
}

void ExampleReader::feature(uint64_t hash, double value, int64_t column) {
  const float single = float(value);
  if (!std::isfinite(single)) throw Malformed{"expected a finite number that fits single precision", column};
  if (single == 0) return;  // says nothing
  if (single != 1.0f && block_.values.empty()) {
    block_.values.reserve(block_.hashes.capacity());
    block_.values.assign(block_.hashes.size(), 1.0f);
    block_.values.push_back(single);
  } else if (!block_.values.empty()) {
    block_.values.push_back(single);
  }
  block_.hashes.push_back(hash);
}

void ExampleReader::analyse(std::string_view document) {
  analyzer_(document, [this](uint64_t hash) { block_.hashes.push_back(hash); });
  if (!block_.values.empty()) block_.values.resize(block_.hashes.size(), 1.0f);
}

// ---------------------------------------------------------------------------------------------- text

void ExampleReader::parse_text(std::string_view line) {
  if (line.empty()) return;
  const bool first = settings_.label_place == ReaderSettings::Place::first;
  if (settings_.label_place != ReaderSettings::Place::none) {
    const size_t place = first ? line.find(settings_.separator) : line.rfind(settings_.separator);
    if (place != std::string_view::npos) {
      set_label(first ? line.substr(0, place) : line.substr(place + 1));
      line = first ? line.substr(place + 1) : line.substr(0, place);
    } else if (settings_.label_required) {
      const std::string mark = settings_.separator == '\t' ? "a tab" : shown(std::string_view(&settings_.separator, 1));
      throw Malformed{"expected a label, " + mark + " and a text, found no " +
                      (settings_.separator == '\t' ? "tab" : mark) + " in " + shown(line)};
    }
  }
  analyse(line);
  finish();
}

// ---------------------------------------------------------------------------------------------- vw

void ExampleReader::parse_vw(std::string_view line) {
  if (is_blank(line)) return;
  const char* p = line.data();
  const char* const end = p + line.size();
  const char* const bar = static_cast<const char*>(std::memchr(p, '|', line.size()));
  if (!bar) throw Malformed{"expected '|' before the features, found none in " + shown(line)};
  const char* at = bar;
  vw_label(p, bar);
  const double weight = extra_.number;
  try {
    while (at < end) vw_namespace(p, at, end);
  } catch (Malformed& problem) {
    if (problem.column == 0) problem.column = at - p + 1;
    throw;
  }
  finish(weight);
}

// [label [importance]] ['tag]: a word that touches the bar, or begins with ', is the tag.
void ExampleReader::vw_label(const char* p, const char* bar) {
  std::string_view words[4];
  int n = 0;
  bool touches = false;
  extra_.number = 1;
  while (true) {
    while (p < bar && is_space(*p)) ++p;
    if (p == bar) break;
    const char* begin = p;
    if (*p == '"' && n == 0) {
      const void* close = std::memchr(p + 1, '"', size_t(bar - p - 1));
      if (!close) throw Malformed{"expected '\"' after the label", 1};
      p = static_cast<const char*>(close) + 1;
      if (p < bar && !is_space(*p)) throw Malformed{"expected a space after the quoted label", 1};
      words[n++] = std::string_view(begin + 1, size_t(p - begin - 2));
      continue;
    }
    while (p < bar && !is_space(*p)) ++p;
    if (n == 4) throw Malformed{"expected at most a label, an importance and a tag before '|'"};
    words[n++] = std::string_view(begin, size_t(p - begin));
    touches = p == bar;
  }
  if (n > 0 && (touches || (!words[n - 1].empty() && words[n - 1].front() == '\''))) --n;
  if (n == 0) return;
  if (words[0].find(':') != std::string_view::npos)
    throw Malformed{"expected one label and no costs, found " + shown(words[0])};
  if (n > 2) throw Malformed{"expected a label, an importance and a tag; an initial prediction is not supported"};
  set_number_label(words[0]);
  if (n == 2 && (!whole_number(words[1], extra_.number) || !std::isfinite(float(extra_.number)) || extra_.number < 0))
    throw Malformed{"expected a number of at least 0 as importance, found " + shown(words[1])};
}

void ExampleReader::vw_namespace(const char* start, const char*& p, const char* end) {
  const uint64_t seed = settings_.text.seed;
  const auto number = [&](const char* what) {  // behind the colon
    double value;
    const char* const after = read_number(++p, end, value);
    if (!after || (after < end && !is_space(*after) && *after != '|')) {
      const char* stop = p;
      while (stop < end && !is_space(*stop) && *stop != '|') ++stop;
      throw Malformed{std::string("expected a number after ") + what + " and ':', found " +
                      shown(std::string_view(p, size_t(stop - p)))};
    }
    p = after;
    return value;
  };
  const char* const name = ++p;  // behind the bar
  p = vw_name_end(p, end, readable_);
  const bool named = p > name;
  const uint64_t space = named ? feature_hash(std::string_view(name, size_t(p - name)), seed) : 0;
  const double scale = p < end && *p == ':' ? number("a namespace") : 1.0;
  for (uint64_t nameless = 0; p < end && *p != '|';) {
    if (is_space(*p)) {
      ++p;
      continue;
    }
    const char* const begin = p;
    p = vw_name_end(p, end, readable_);
    uint64_t hash =
        p > begin ? feature_hash(std::string_view(begin, size_t(p - begin)), seed) : feature_hash(nameless++, seed);
    if (named) hash = combine(space, hash);
    const double value = scale * (p < end && *p == ':' ? number("a name") : 1.0);
    feature(hash, value, begin - start + 1);
  }
}

// ---------------------------------------------------------------------------------------------- svmlight

void ExampleReader::parse_svmlight(std::string_view line) {
  if (const size_t comment = line.find('#'); comment != std::string_view::npos) line = line.substr(0, comment);
  const char* p = line.data();
  const char* const start = p;
  const char* const end = p + line.size();
  const auto word = [&] {
    while (p < end && is_space(*p)) ++p;
    const char* const begin = p;
    while (p < end && !is_space(*p)) ++p;
    return std::string_view(begin, size_t(p - begin));
  };
  const std::string_view first = word();
  if (first.empty()) return;
  if (first.find(':') != std::string_view::npos) {
    p = first.data();
  } else {
    if (settings_.label_sets) {
      set_label(first);
    } else {
      if (first.find(',') != std::string_view::npos)
        throw Malformed{"expected one label, found several: " + shown(first)};
      set_number_label(first);
    }
  }
  while (true) {
    while (p < end && is_space(*p)) ++p;
    if (p == end) break;
    const char* const begin = p;
    const int64_t column = begin - start + 1;
    uint64_t index = 0;
    for (; p < end && is_digit(*p) && p - begin < 18; ++p) index = index * 10 + uint64_t(*p - '0');
    double value = 0;
    const char* const after = p > begin && p < end && *p == ':' ? read_number(p + 1, end, value) : nullptr;
    if (!after || (after < end && !is_space(*after))) {
      p = begin;
      const std::string_view found = word();
      if (found.substr(0, 4) == "qid:") continue;
      throw Malformed{"expected index:value, found " + shown(found), column};
    }
    p = after;
    if (index == 0 && !settings_.zero_based)
      throw Malformed{"expected an index of at least 1 (or zero_based=True), found 0", column};
    index -= settings_.zero_based ? 0 : 1;
    n_columns_ = std::max(n_columns_, int64_t(index) + 1);
    if (settings_.known_columns >= 0 && int64_t(index) >= settings_.known_columns) {
      ++n_unseen_columns_;
      continue;
    }
    feature(index < settings_.own_columns ? index : feature_hash(index, settings_.text.seed), value, column);
  }
  finish();
}

// --------------------------------------------------------------------------------------------- fields of csv and jsonl

std::string ExampleReader::name_of(const FieldRef& ref, const std::vector<std::string>& names, const char* part) const {
  const char* const kind = settings_.format == FileFormat::csv ? "column" : "field";
  if (const std::string* name = std::get_if<std::string>(&ref)) {
    const bool dotted = settings_.format == FileFormat::jsonl && name->find('.') != std::string::npos;
    if (dotted || std::find(names.begin(), names.end(), *name) != names.end()) return *name;
    throw Malformed{std::string("expected a ") + kind + " " + shown(*name) + " (" + part + "); the " + kind +
                        "s are: " + listed(names),
                    -1};
  }
  const int64_t n = int64_t(names.size()), place = std::get<int64_t>(ref);
  if (place < -n || place >= n)
    throw Malformed{std::string("expected a ") + kind + " number " + std::to_string(place) + " (" + part +
                        "); there are " + std::to_string(n) + ": " + listed(names),
                    -1};
  return names[size_t(place < 0 ? place + n : place)];
}

// Which part each field plays. Where nothing was asked for: the label is "label", or the first column of a csv; the
// text is "text"; without a text, all other fields are features.
void ExampleReader::resolve(const std::vector<std::string>& names) {
  const bool csv = settings_.format == FileFormat::csv;
  const auto has = [&](const std::string& name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  Fields found;
  if (settings_.has_label) {
    if (!settings_.label) {
      if (has("label"))
        found.label = "label";
      else if (csv && !names.empty())
        found.label = names[0];
      else if (settings_.label_required)
        found.label = name_of(std::string("label"), names, "the label");
    } else if (settings_.label_required) {
      found.label = name_of(*settings_.label, names, "the label");
    } else if (const std::string* name = std::get_if<std::string>(&*settings_.label)) {
      if (!csv || has(*name)) found.label = *name;
    } else {
      found.label = name_of(*settings_.label, names, "the label");
    }
  }
  if (settings_.texts)
    for (const FieldRef& ref : *settings_.texts) found.texts.push_back(name_of(ref, names, "text"));
  else if (has("text") && found.label != "text")
    found.texts.push_back("text");
  found.rest = settings_.rest || (!settings_.columns && !settings_.texts && found.texts.empty());
  if (settings_.columns)
    for (const FieldRef& ref : *settings_.columns) {
      // The fields of objects may differ from line to line; those of a csv may not.
      const std::string* name = std::get_if<std::string>(&ref);
      found.columns.push_back(name && !csv ? *name : name_of(ref, names, "a feature"));
    }
  fields_.clear();
  places_.clear();
  const uint64_t seed = settings_.text.seed;
  const auto add = [&](Field::Role role, const std::string& name) {
    if (!places_.emplace(name, int(fields_.size())).second)
      throw Malformed{"the field " + shown(name) + " has two parts to play", -1};
    Field field;
    field.role = role;
    field.name = name;
    field.hash = feature_hash(std::string_view(name), seed);
    if (const auto code = settings_.numbers.find(name); code != settings_.numbers.end()) {
      field.code = &code->second;
      for (size_t j = 0; j < code->second.knots.size(); ++j)
        field.knot_hashes.push_back(combine(field.hash, feature_hash("\x01knot " + std::to_string(j), seed)));
    }
    if (const auto order = settings_.dates.find(name); order != settings_.dates.end()) field.date = order->second;
    n_texts_ += role == Field::Role::text;
    dotted_ = dotted_ || name.find('.') != std::string::npos;
    fields_.push_back(std::move(field));
  };
  n_texts_ = 0;
  if (found.label) add(Field::Role::label, *found.label);
  for (const std::string& name : found.texts) add(Field::Role::text, name);
  for (const std::string& name : found.columns) add(Field::Role::record, name);
  for (const std::string& name : settings_.ignored)
    if (!places_.count(name)) add(Field::Role::ignored, name);
  if (found.rest && !csv)  // their fields may come in any line: those with a code must be known from the first on
    for (const auto& [name, code] : settings_.numbers)
      if (!places_.count(name)) add(Field::Role::record, name);
  if (found.rest && csv)
    for (const std::string& name : names)
      if (!places_.count(name)) {
        add(Field::Role::record, name);
        found.columns.push_back(name);
      }
  if (found.rest && csv) found.rest = false;
  if (found.texts.empty() && found.columns.empty() && !found.rest)
    throw Malformed{"expected something to learn from beside the label; found: " + listed(names), -1};
  for (const FieldRef& ref : settings_.categorical) {
    const std::string* given = std::get_if<std::string>(&ref);
    const std::string name = given && !csv ? *given : name_of(ref, names, "categorical");
    if (found.rest && !places_.count(name)) add(Field::Role::record, name);
    const auto place = places_.find(name);
    if (place == places_.end() || fields_[size_t(place->second)].role != Field::Role::record)
      throw Malformed{"expected the categorical field " + shown(name) + " to be among the features", -1};
    fields_[size_t(place->second)].categorical = true;
  }
  resolved_ = std::move(found);
}

void ExampleReader::analyse(const Field& field, std::string_view document) {
  if (n_texts_ == 1) return analyse(document);
  analyzer_(document, [this, &field](uint64_t hash) { block_.hashes.push_back(combine(field.hash, hash)); });
  if (!block_.values.empty()) block_.values.resize(block_.hashes.size(), 1.0f);
}

void ExampleReader::category(const Field& field, std::string_view value) { category(field.hash, field.name, value); }

void ExampleReader::category(uint64_t field, std::string_view name, std::string_view value) {
  const uint64_t hash = combine(field, feature_hash(value, settings_.text.seed));
  if (settings_.gather) categories_.insert(hash);
  if (settings_.know && !known_.contains(hash) && ++n_unseen_categories_ <= kept_problems)
    unseen_.push_back(std::string(name) + "=" + std::string(value));
  feature(hash, 1.0, 0);
}

void ExampleReader::number(const Field& field, double value) {
  if (!field.code) return feature(field.hash, value, 0);
  if (!std::isfinite(float(value))) throw Malformed{"expected a finite number that fits single precision"};
  const NumberCode& code = *field.code;
  feature(field.hash, std::clamp((value - code.mean) / code.scale, -5.0, 5.0), 0);
  const std::vector<double>& knots = code.knots;
  if (knots.size() < 2) return;
  const auto above = std::upper_bound(knots.begin(), knots.end(), value);
  const size_t next = std::clamp<size_t>(size_t(above - knots.begin()), 1, knots.size() - 1);
  const double share = std::clamp((value - knots[next - 1]) / (knots[next] - knots[next - 1]), 0.0, 1.0);
  feature(field.knot_hashes[next - 1], 1 - share, 0);
  feature(field.knot_hashes[next], share, 0);
}

// False where the value is no date in this order.
bool ExampleReader::date(const Field& field, std::string_view value) {
  int parts[6] = {0, 0, 0, -1, 0, 0};
  size_t at = 0;
  int n = 0;
  for (; n < 6; ++n) {
    const size_t begin = at;
    int found = 0;
    while (at < value.size() && is_digit(value[at]) && at - begin < 4) found = found * 10 + (value[at++] - '0');
    if (at == begin) break;
    parts[n] = found;
    if (at == value.size()) {
      ++n;
      break;
    }
    const char c = value[at];
    const bool fits = n < 2 ? (c == '-' || c == '/' || c == '.') : n == 2 ? (c == 'T' || c == ' ') : c == ':';
    if (!fits) {
      ++n;
      break;
    }
    ++at;
  }
  if (n < 3) return false;
  const bool year_first = field.date == DateOrder::ymd;
  const int64_t year = year_first ? parts[0] : parts[2];
  const int64_t month = field.date == DateOrder::dmy ? parts[1] : year_first ? parts[1] : parts[0];
  const int64_t day = year_first ? parts[2] : field.date == DateOrder::dmy ? parts[0] : parts[1];
  if (month < 1 || month > 12 || day < 1 || day > 31 || parts[3] > 24 || parts[4] > 59 || parts[5] > 60) return false;
  // Days since 1970: months counted from March, so that the day that some years have more comes last.
  const int64_t shifted = year - (month <= 2), era = (shifted >= 0 ? shifted : shifted - 399) / 400;
  const int64_t of_era = shifted - era * 400, of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const int64_t days = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
  const double hours = parts[3] < 0 ? 0.0 : parts[3] + parts[4] / 60.0 + parts[5] / 3600.0;
  number(field, double(days) + hours / 24);
  category(field, "\x01month " + std::to_string(month));
  category(field, "\x01weekday " + std::to_string(((days % 7) + 11) % 7));
  if (parts[3] >= 0) category(field, "\x01hour " + std::to_string(parts[3]));
  return true;
}

// ---------------------------------------------------------------------------------------------- csv

void ExampleReader::split_csv(std::string_view line) {
  cells_.clear();
  scratch_.clear();
  scratch_.reserve(line.size());  // the cells point into it
  const char delimiter = settings_.separator;
  const char* p = line.data();
  const char* const end = p + line.size();
  const auto padding = [delimiter](char c) { return c != delimiter && is_space(c); };
  while (true) {
    // Spaces around cells are no part of them, unless they stand in quotes.
    while (p < end && padding(*p)) ++p;
    if (p < end && *p == '"') {
      const char* begin = ++p;
      const size_t kept = scratch_.size();
      bool doubled = false;
      while (true) {
        const char* const quote = p < end ? static_cast<const char*>(std::memchr(p, '"', size_t(end - p))) : nullptr;
        if (!quote) throw Malformed{"expected '\"' at the end of a quoted cell, found the end of the file"};
        p = quote + 1;
        if (p == end || *p != '"') break;
        scratch_.append(begin, p);
        doubled = true;
        begin = ++p;
      }
      if (doubled) scratch_.append(begin, p - 1);
      cells_.push_back(doubled ? std::string_view(scratch_).substr(kept)
                               : std::string_view(begin, size_t(p - 1 - begin)));
      while (p < end && padding(*p)) ++p;
      if (p < end && *p != delimiter)
        throw Malformed{"expected the end of the cell after '\"', found " + shown(std::string_view(p, 1))};
    } else {
      const char* const stop = p < end ? static_cast<const char*>(std::memchr(p, delimiter, size_t(end - p))) : nullptr;
      const char* last = stop ? stop : end;
      while (last > p && padding(last[-1])) --last;
      cells_.push_back(std::string_view(p, size_t(last - p)));
      p = stop ? stop : end;
    }
    if (p == end) return;
    ++p;
  }
}

void ExampleReader::csv_header() {
  std::vector<std::string> names;
  for (size_t i = 0; i < cells_.size(); ++i) {
    names.push_back(settings_.header ? std::string(cells_[i]) : std::to_string(i));
    if (std::find(names.begin(), names.end() - 1, names.back()) != names.end() - 1)
      throw Malformed{"expected different names of columns, found " + shown(names.back()) + " twice", -1};
  }
  resolve(names);
  // From here on a field for every column, in their order.
  std::vector<Field> by_column(names.size());
  for (size_t i = 0; i < names.size(); ++i)
    if (const auto place = places_.find(names[i]); place != places_.end())
      by_column[i] = fields_[size_t(place->second)];
  fields_ = std::move(by_column);
  expected_ = names.size();
}

void ExampleReader::parse_csv(std::string_view line) {
  if (line.empty()) return;
  if (!resolved_) {
    try {
      split_csv(line);
    } catch (Malformed& problem) {
      problem.column = -1;  // without a header nothing can be read
      throw;
    }
    if (!settings_.header && settings_.width > 0 && int64_t(cells_.size()) != settings_.width)
      throw Malformed{"expected " + std::to_string(settings_.width) + " columns as in most lines, found " +
                      std::to_string(cells_.size())};
    csv_header();
    if (settings_.header) return;
  }
  split_csv(line);
  if (cells_.size() != expected_)
    throw Malformed{"expected " + std::to_string(expected_) + (expected_ == 1 ? " column" : " columns") +
                    (settings_.header ? " as in the header" : " as in the first line") + ", found " +
                    std::to_string(cells_.size())};
  for (size_t i = 0; i < expected_; ++i) {
    const Field& field = fields_[i];
    const std::string_view cell = cells_[i];
    double value;
    if (field.role == Field::Role::text) {
      analyse(field, cell);
    } else if (field.role == Field::Role::label) {
      set_label(cell);
    } else if (field.role == Field::Role::record && !cell.empty()) {
      if (!field.categorical && whole_number(cell, value))
        number(field, value);
      else if (field.date == DateOrder::none || !date(field, cell))
        category(field, cell);
    }
  }
  finish();
}

// ---------------------------------------------------------------------------------------------- jsonl

void ExampleReader::json_value(JsonScanner& json, Value& value) {
  value.kind = json.peek();
  value.present = true;
  switch (value.kind) {
    case Json::null: return json.null();
    case Json::boolean:
      value.number = json.boolean();
      value.text = value.number ? "true" : "false";
      return;
    case Json::number: value.text = json.number(value.number); return;
    case Json::string: value.text = json.string(value.scratch); return;
    case Json::array: return json_items(json, value);
    default: json.skip();
  }
}

// The strings and numbers of an array; what else is in it is passed over.
void ExampleReader::json_items(JsonScanner& json, Value& value) {
  value.items.clear();
  json.expect('[', "'['");
  if (json.accept(']')) return;
  do {
    double number;
    switch (json.peek()) {
      case Json::string: value.items.emplace_back(json.string(value.scratch)); break;
      case Json::number: value.items.emplace_back(json.number(number)); break;
      default: json.skip();
    }
  } while (json.accept(','));
  json.expect(']', "',' or ']'");
}

// The names of the fields of the first object say what can be learnt from.
void ExampleReader::json_first(std::string_view line) {
  JsonScanner json(line);
  std::vector<std::string> names;
  std::string scratch;
  json.expect('{', "'{'");
  if (!json.accept('}')) {
    do {
      const std::string name(json.string(scratch));
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      json.expect(':', "':' after the name of a field");
      json.skip();
    } while (json.accept(','));
    json.expect('}', "',' or '}'");
  }
  json.expect_end();
  resolve(names);
  values_.resize(fields_.size());
}

void ExampleReader::json_fields(JsonScanner& json, const std::string& prefix, int depth) {
  std::string scratch;
  json.expect('{', "'{'");
  if (json.accept('}')) return;
  do {
    const std::string_view name = json.string(scratch);
    json.expect(':', "':' after the name of a field");
    const std::string_view path = prefix.empty() ? name : std::string_view(key_.assign(prefix).append(name));
    const auto place = places_.find(path);
    if (place != places_.end()) {
      json_value(json, values_[size_t(place->second)]);
      continue;
    }
    if (dotted_ && json.peek() == Json::object) {
      json_object_below(json, std::string(path) + ".", depth + 1);
    } else if (resolved_->rest && depth == 0) {
      const uint64_t hash = feature_hash(name, settings_.text.seed);
      json_value(json, extra_);
      if (extra_.kind == Json::number || extra_.kind == Json::boolean)
        feature(hash, extra_.number, 0);
      else if (extra_.kind == Json::string)
        category(hash, name, extra_.text);
      else if (extra_.kind == Json::array)
        for (const std::string& item : extra_.items) category(hash, name, item);
    } else {
      json.skip();
    }
  } while (json.accept(','));
  json.expect('}', "',' or '}'");
}

// An object inside another: looked into only if one of its fields has a part to play.
void ExampleReader::json_object_below(JsonScanner& json, const std::string& prefix, int depth) {
  const auto below = places_.lower_bound(prefix);
  if (below != places_.end() && below->first.compare(0, prefix.size(), prefix) == 0)
    json_fields(json, prefix, depth);
  else
    json.skip();
}

void ExampleReader::parse_jsonl(std::string_view line) {
  if (is_blank(line)) return;
  if (!resolved_) json_first(line);
  for (Value& value : values_) value.present = false;
  JsonScanner json(line);
  json_fields(json, std::string(), 0);
  json.expect_end();
  for (size_t i = 0; i < fields_.size(); ++i) {
    const Field& field = fields_[i];
    const Value& value = values_[i];
    const bool scalar = value.kind != Json::object && value.kind != Json::array;
    if (field.role == Field::Role::text) {
      if (!value.present) throw Malformed{"expected a field " + shown(field.name)};
      if (value.kind == Json::null) continue;
      if (value.kind != Json::string) throw Malformed{"expected a string as " + shown(field.name)};
      analyse(field, value.text);
    } else if (!value.present || value.kind == Json::null) {
      continue;  // no label, no feature
    } else if (field.role == Field::Role::label) {
      if (!scalar) throw Malformed{"expected a string or a number as " + shown(field.name)};
      if (value.kind == Json::number)
        set_number_label(value.text);
      else
        set_label(value.text);
    } else if (field.role == Field::Role::ignored) {
      continue;
    } else if ((value.kind == Json::number || value.kind == Json::boolean) && !field.categorical) {
      number(field, value.number);
    } else if (value.kind == Json::array) {
      for (const std::string& item : value.items) category(field, item);
    } else if (scalar) {
      double digits;
      if (field.code && !field.categorical && whole_number(value.text, digits))  // a number that stands in quotes
        number(field, digits);
      else if (field.date == DateOrder::none || !date(field, value.text))
        category(field, value.text);
    }
  }
  finish();
}

// ---------------------------------------------------------------------------------------------- Python

namespace {

FileFormat format_of(const std::string& name) {
  if (name == "text") return FileFormat::text;
  if (name == "vw") return FileFormat::vw;
  if (name == "svmlight") return FileFormat::svmlight;
  if (name == "csv") return FileFormat::csv;
  if (name == "jsonl") return FileFormat::jsonl;
  fail("format must be 'text', 'vw', 'svmlight', 'csv' or 'jsonl'");
}

Analyzer analyzer_of(const std::string& name) {
  if (name == "word") return Analyzer::word;
  if (name == "char") return Analyzer::chars;
  if (name == "char_wb") return Analyzer::char_wb;
  fail("analyzer must be 'word', 'char' or 'char_wb'");
}

using Refs = std::vector<FieldRef>;

ReaderSettings settings_from(const std::string& format, bool numeric, bool label_required, bool skip, int64_t limit,
                             const std::string& analyzer, std::pair<int, int> ngrams, bool lowercase, uint64_t seed,
                             const std::string& label_place, const std::string& separator, bool header, bool zero_based,
                             int n_bits, std::optional<FieldRef> label, std::optional<Refs> texts,
                             std::optional<Refs> columns, bool rest, Refs categorical) {
  ReaderSettings s;
  s.format = format_of(format);
  s.numeric = numeric;
  s.label_required = label_required;
  s.skip_malformed = skip;
  require(limit >= -1, "limit must be at least 0, or -1 for all");
  s.limit = limit;
  s.text.analyzer = analyzer_of(analyzer);
  require(ngrams.first >= 1 && ngrams.first <= ngrams.second && ngrams.second <= 64,
          "ngrams must be 1 <= min <= max <= 64");
  s.text.min_n = ngrams.first;
  s.text.max_n = ngrams.second;
  s.text.lowercase = lowercase;
  s.text.seed = seed;
  using Place = ReaderSettings::Place;
  require(label_place == "first" || label_place == "last" || label_place == "none",
          "label_place must be 'first', 'last' or 'none'");
  s.label_place = label_place == "first" ? Place::first : label_place == "last" ? Place::last : Place::none;
  s.has_label = label_place != "none";
  require(s.has_label || !label_required, "a label cannot be required where there is none");
  const char c = separator.size() == 1 ? separator[0] : '\n';
  require(c != '\n' && c != '\r' && c != '"' && uint8_t(c) < 128,
          "separator must be one ASCII character, no line end and no quote");
  s.separator = c;
  s.header = header;
  s.zero_based = zero_based;
  require(n_bits >= 0 && n_bits <= 62, "n_bits must lie between 0 and 62");
  s.own_columns = n_bits == 0 ? 0 : uint64_t(1) << n_bits;
  s.label = std::move(label);
  s.texts = std::move(texts);
  s.columns = std::move(columns);
  s.rest = rest;
  s.categorical = std::move(categorical);
  return s;
}

FieldRef field_ref(nb::handle field) {
  if (PyUnicode_Check(field.ptr())) return bytes_of_name(field);
  if (!PyLong_Check(field.ptr()) || PyBool_Check(field.ptr()))
    throw nb::type_error("a field is given by its name or its number");
  const int64_t number = PyLong_AsLongLong(field.ptr());
  if (number == -1 && PyErr_Occurred()) throw nb::python_error();
  return number;
}
Refs field_refs(const nb::list& fields) {
  Refs out;
  for (nb::handle field : fields) out.push_back(field_ref(field));
  return out;
}
std::optional<FieldRef> optional_ref(const std::optional<nb::object>& field) {
  return field && !field->is_none() ? std::optional<FieldRef>(field_ref(*field)) : std::nullopt;
}
std::optional<Refs> optional_refs(const std::optional<nb::list>& fields) {
  return fields ? std::optional<Refs>(field_refs(*fields)) : std::nullopt;
}

// What the fields of csv and jsonl files are beyond their parts.
void set_codes(ReaderSettings& s, const nb::list& ignored, const nb::list& numbers, const nb::list& dates) {
  for (nb::handle name : ignored) s.ignored.push_back(bytes_of_name(name));
  for (nb::handle item : numbers) {
    const auto [name, mean, scale, knots] = nb::cast<std::tuple<nb::object, double, double, std::vector<double>>>(item);
    require(std::isfinite(mean) && std::isfinite(scale) && scale > 0,
            "a number needs a finite mean and a scale above 0");
    for (size_t j = 0; j < knots.size(); ++j)
      require(std::isfinite(knots[j]) && (j == 0 || knots[j] > knots[j - 1]), "knots must be finite and ascend");
    s.numbers[bytes_of_name(name)] = NumberCode{mean, scale, knots};
  }
  for (nb::handle item : dates) {
    const auto [name, order] = nb::cast<std::pair<nb::object, std::string>>(item);
    require(order == "ymd" || order == "dmy" || order == "mdy", "a date must be 'ymd', 'dmy' or 'mdy'");
    s.dates[bytes_of_name(name)] = order == "ymd" ? DateOrder::ymd : order == "dmy" ? DateOrder::dmy : DateOrder::mdy;
  }
}

nb::object decoded(const std::string& text) {
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "replace"));
}
nb::object named(const std::string& text) {
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "surrogateescape"));
}
nb::tuple problem(const ExampleReader::Problem& p) { return nb::make_tuple(p.line, decoded(p.what)); }

// The bytes of any object that has some, for as long as this lives.
class Bytes {
 public:
  explicit Bytes(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_SIMPLE) != 0) nb::raise_python_error();
  }
  ~Bytes() { PyBuffer_Release(&buffer_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  std::string_view view() const { return {static_cast<const char*>(buffer_.buf), size_t(buffer_.len)}; }

 private:
  Py_buffer buffer_;
};

nb::list names_of(const std::vector<std::string>& names) {
  nb::list out;
  for (const std::string& name : names) out.append(named(name));
  return out;
}

}  // namespace

void bind_readers(nb::module_& m) {
  nb::class_<ExampleReader>(m, "ExampleReader")
      .def(
          "__init__",
          [](ExampleReader* self, const std::string& format, bool numeric, bool label_required, bool skip,
             int64_t limit, const std::string& analyzer, std::pair<int, int> ngrams, bool lowercase, uint64_t seed,
             const std::string& label_place, const std::string& separator, bool header, bool zero_based, int n_bits,
             std::optional<nb::object> label, std::optional<nb::list> texts, std::optional<nb::list> columns, bool rest,
             nb::list categorical, nb::list ignored, nb::list numbers, nb::list dates, int64_t known_columns,
             bool gather, std::optional<nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>> known,
             bool keep_lines, int64_t width, std::optional<StringSettings> strings, int copies) {
            ReaderSettings s =
                settings_from(format, numeric, label_required, skip, limit, analyzer, ngrams, lowercase, seed,
                              label_place, separator, header, zero_based, n_bits, optional_ref(label),
                              optional_refs(texts), optional_refs(columns), rest, field_refs(categorical));
            set_codes(s, ignored, numbers, dates);
            require(known_columns >= -1, "known_columns must be at least 0, or -1 for all");
            s.known_columns = known_columns;
            s.gather = gather;
            s.know = known.has_value();
            if (known) s.known.assign(known->data(), known->data() + known->size());
            s.keep_lines = keep_lines;
            require(width >= 0, "width must be at least 0");
            s.width = width;
            s.strings = std::move(strings);
            require(copies >= 1, "copies must be at least 1");
            s.copies = copies;
            new (self) ExampleReader(std::move(s));
          },
          "format"_a, nb::kw_only(), "numeric"_a = false, "label_required"_a = true, "skip"_a = false, "limit"_a = -1,
          "analyzer"_a = "word", "ngrams"_a = std::pair<int, int>(1, 1), "lowercase"_a = true, "seed"_a = 0,
          "label_place"_a = "first", "separator"_a = "\t", "header"_a = true, "zero_based"_a = false, "n_bits"_a = 0,
          "label"_a.none() = nb::none(), "texts"_a.none() = nb::none(), "columns"_a.none() = nb::none(),
          "rest"_a = false, "categorical"_a = nb::list(), "ignored"_a = nb::list(), "numbers"_a = nb::list(),
          "dates"_a = nb::list(), "known_columns"_a = -1, "gather"_a = false, "known"_a.none() = nb::none(),
          "keep_lines"_a = false, "width"_a = 0, "strings"_a.none() = nb::none(), "copies"_a = 1)
      .def("take_label_sets", &ExampleReader::take_label_sets, "Labels of svmlight lines may be several.")
      .def(
          "feed",
          [](ExampleReader& self, nb::object chunk, bool last) {
            const Bytes bytes(chunk);
            nb::gil_scoped_release release;
            return self.feed(bytes.view(), last);
          },
          "chunk"_a, "last"_a)
      .def_prop_ro(
          "error",
          [](const ExampleReader& r) -> nb::object { return r.error() ? nb::object(problem(*r.error())) : nb::none(); })
      .def_prop_ro("skipped",
                   [](const ExampleReader& r) {
                     nb::list out;
                     for (const auto& p : r.skipped()) out.append(problem(p));
                     return out;
                   })
      .def_prop_ro("n_skipped", &ExampleReader::n_skipped)
      .def_prop_ro("n_examples", &ExampleReader::n_examples)
      .def_prop_ro("n_columns", &ExampleReader::n_columns)
      .def_prop_ro("n_lines", &ExampleReader::n_lines)
      .def_prop_ro("n_unseen_columns", &ExampleReader::n_unseen_columns)
      .def_prop_ro("n_unseen_categories", &ExampleReader::n_unseen_categories)
      .def_prop_ro("unseen_categories",
                   [](const ExampleReader& r) {
                     nb::list out;
                     for (const auto& name : r.unseen_categories()) out.append(decoded(name));
                     return out;
                   })
      .def_prop_ro("categories",
                   [](const ExampleReader& r) -> nb::object {
                     if (r.categories().full()) return nb::none();
                     return to_numpy(r.categories().sorted());
                   })
      .def_prop_ro("gaps",
                   [](const ExampleReader& r) {
                     nb::list out;
                     for (const auto& gap : r.gaps()) out.append(nb::make_tuple(gap.before, named(gap.line)));
                     return out;
                   })
      .def_prop_ro("done", &ExampleReader::done)
      .def_prop_ro("fields", [](const ExampleReader& r) -> nb::object {
        if (!r.fields()) return nb::none();
        nb::dict out;
        out["label"] = r.fields()->label ? named(*r.fields()->label) : nb::object(nb::none());
        out["texts"] = names_of(r.fields()->texts);
        out["columns"] = names_of(r.fields()->columns);
        out["rest"] = r.fields()->rest;
        return out;
      });
}

}  // namespace mercer
