// Feature names to columns: a growing table of strings, or hashing into 2^n_bits buckets; and the reading of Python
// tokens.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/buffer.hpp"
#include "base/memory.hpp"
#include "hashing/hash.hpp"

namespace mercer {

// Where names end in their bytes: the end of a block of names in full, those within it from there on, in half the
// memory.
class NameEnds {
 public:
  static constexpr size_t kBlock = 64, kMaxName = size_t(1) << 24;  // a block spans less than 2^32 bytes
  size_t size() const { return ends_.size(); }
  uint64_t operator[](size_t i) const { return bases_[i / kBlock] + ends_[i]; }
  void push_back(uint64_t end) {
    if (ends_.size() % kBlock == 0) bases_.push_back(end);
    ends_.push_back(uint32_t(end - bases_.back()));
  }
  void reserve(size_t n) {
    ends_.reserve(n);
    bases_.reserve(n / kBlock + 1);
  }

 private:
  std::vector<uint64_t> bases_;
  std::vector<uint32_t> ends_;
};

class Vocabulary {
 public:
  // n_bits == 0: a table of the names seen; otherwise names are hashed and nothing is kept.
  explicit Vocabulary(int n_bits) : n_bits_(n_bits) {}

  int n_bits() const { return n_bits_; }
  int64_t size() const { return n_bits_ ? int64_t(1) << n_bits_ : int64_t(ends_.size()); }
  std::string_view name(int64_t i) const {
    const size_t begin = i ? ends_[size_t(i) - 1] : 0;
    return std::string_view(bytes_).substr(begin, ends_[size_t(i)] - begin);
  }
  // The column of a name; -1 if it is not in the table and the table is not to grow.
  int64_t column(std::string_view name, bool grow);
  // Puts the names into byte order; returns the new column of each old one. The table of places is made again when a
  // name is next looked up: a training that follows does not need it.
  std::vector<int32_t> sort();
  const std::string& bytes() const { return bytes_; }
  const NameEnds& ends() const { return ends_; }

 private:
  friend class NameBatch;
  // A slot holds what a look-up needs, so that it touches the table and the name and nothing else.
  struct Slot {
    uint32_t tag = 0, column = 0;  // column + 1; 0 = free
    uint64_t begin : 40;           // where the name is in bytes_
    uint64_t size : 24;
    Slot() : begin(0), size(0) {}
    Slot(uint32_t t, uint32_t c, uint64_t b, uint64_t s) : tag(t), column(c), begin(b), size(s) {}
  };
  int64_t locate(std::string_view name, uint64_t hash, bool grow);
  // What is kept in model files (columns of hashed names) rests on a hash that never changes; the table does not.
  uint64_t hash_of(std::string_view name) const { return n_bits_ ? hash_bytes(name) : fast_hash(name); }
  size_t home(uint64_t hash) const { return size_t(hash) & (slots_.size() - 1); }
  bool crowded(size_t capacity) const { return ends_.size() * 3 > capacity * 2; }
  void prepare();  // makes the table where there is none
  void rehash(size_t capacity);
  int n_bits_;
  std::string bytes_;
  NameEnds ends_;
  std::vector<Slot, HugePages<Slot>> slots_;
};

// Stacked rows as they are read. A row is sorted by column when it is closed; equal columns are added.
struct TokenRows {
  Buffer<int64_t> offsets;   // of sequences
  GrowingRows<double> rows;  // values are kept only once one other than 1 was met
  bool all_ones = true;

  TokenRows() { offsets.push(0); }
  void add(int64_t column, double value) {
    row_.emplace_back();  // filled in place: a copy of what was just written in parts would wait for all of them
    row_.back().column = value == 0.0 ? -1 : int32_t(column);
    row_.back().value = value;
  }
  void close_row();
  void close_sequence() { offsets.push(int64_t(rows.ends.size()) - 1); }

 private:
  struct Entry {
    int32_t column;  // -1: to be left out
    double value;
  };
  bool take_in_order();
  std::vector<Entry> row_;
  // Names made by one template stand in one order in every row: the order that sorted the last row is tried first.
  std::vector<uint32_t> order_, sorted_;
};

// The names of a sequence's features, looked up together: by the time a name is compared, the places in memory that its
// look-up touches are on their way for all of them.
class NameBatch {
 public:
  NameBatch(Vocabulary& vocabulary, bool grow, TokenRows& out) : v_(vocabulary), grow_(grow), out_(out) {
    v_.prepare();
  }
  void add(std::string_view name, double value);
  void add(std::string_view key, char separator, std::string_view name);  // key + separator + name, value 1
  void close_row() { row_ends_.push_back(items_.size()); }
  void close_sequence();

 private:
  struct Item {
    size_t begin, size;
    uint64_t hash;
    double value;
  };
  void finish(size_t begin, double value);
  Vocabulary& v_;
  const bool grow_;
  TokenRows& out_;
  std::string text_;
  std::vector<Item> items_;
  std::vector<size_t> row_ends_;
};

// A feature template as pieces: literals and (row, column) references. See mercer.data.Template.
struct TemplatePiece {
  std::string literal;
  int row = 0, column = -1;  // column == -1: a literal
};
using TemplatePattern = std::vector<TemplatePiece>;

// Each returns false with a Python exception set. The message names the sequence and the token.
// Tokens: dict {name: str | number | bool | None | list of str}, list / tuple of str, or one str.
bool read_tokens(PyObject* sequences, Vocabulary& vocabulary, bool grow, TokenRows& out);
// Sentences of tuples of columns, expanded by the patterns.
bool read_columns(PyObject* sentences, const std::vector<TemplatePattern>& patterns, Vocabulary& vocabulary, bool grow,
                  TokenRows& out);

}  // namespace mercer
