// Documents in one buffer to sparse rows, on threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "hashing/hashed_rows.hpp"

namespace mercer {

// Documents in one buffer: document i is data[offset(i)] .. data[offset(i + 1)].
struct Documents {
  const char* data;
  const int32_t* short_offsets;
  const int64_t* long_offsets;
  int64_t n;

  int64_t offset(int64_t i) const { return short_offsets ? short_offsets[i] : long_offsets[i]; }
  std::string_view operator[](int64_t i) const { return {data + offset(i), size_t(offset(i + 1) - offset(i))}; }
  // The first document that begins at or after this place.
  int64_t at(int64_t place) const {
    int64_t low = 0, high = n;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (offset(middle) < place)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
};

// The rows of documents first .. last.
template <class Item, class Row>
HashedRows hash_range(const Documents& documents, int64_t first, int64_t last, bool single, RowMerger<Item>& merger,
                      Row& row) {
  HashedRows out(single);
  out.visit([&](auto& own) { own.ends.reserve(size_t(last - first) + 1); });
  const int64_t begin = documents.offset(first), bytes = documents.offset(last) - begin;
  bool foreseen = bytes < 65536;
  for (int64_t i = first; i < last; ++i) {
    row(documents[i], merger);
    out.visit([&](auto& own) { merger.finish(own); });
    const int64_t done = documents.offset(i + 1) - begin;
    if (!foreseen && done >= bytes / 32) {
      out.visit([&](auto& own) {
        own.indices.foresee(double(done) / double(bytes));
        own.values.foresee(double(done) / double(bytes));
      });
      foreseen = true;
    }
  }
  return out;
}

// One row a document: make_row() gives, for each thread, a function row(document, merger) that adds its features.
template <class Item, class MakeRow>
HashedRows hash_documents(const Documents& documents, int n_bits, bool with_signs, bool single, Item item, int threads,
                          MakeRow make_row) {
  const int64_t begin = documents.offset(0), bytes = documents.offset(documents.n) - begin;
  const int64_t parts = threads <= 1 ? 1 : std::max<int64_t>(1, std::min<int64_t>(4 * threads, bytes / 65536));
  std::vector<HashedRows> found;
  for (int64_t part = 0; part < parts; ++part) found.emplace_back(single);
  in_parallel(parts, threads, [&](int64_t part) {
    auto row = make_row();
    RowMerger<Item> merger(n_bits, with_signs, item);
    // Empty documents at a boundary belong to the part that begins there.
    const int64_t first = part == 0 ? 0 : documents.at(begin + bytes * part / parts);
    const int64_t last = part == parts - 1 ? documents.n : documents.at(begin + bytes * (part + 1) / parts);
    found[size_t(part)] = hash_range(documents, first, last, single, merger, row);
  });
  if (parts == 1) return std::move(found[0]);
  size_t size = 0;
  for (HashedRows& part : found) size += part.visit([](auto& own) { return own.indices.size(); });
  HashedRows all(single);
  all.reserve(size_t(documents.n), size);
  for (HashedRows& part : found) {
    all.append(part);
    HashedRows done = std::move(part);  // its memory goes here
  }
  return all;
}

}  // namespace mercer
