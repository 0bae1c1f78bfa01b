// Feature names to columns: a growing table of strings, or hashing into 2^n_bits buckets; and the reading of Python
// tokens.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
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
  static constexpr size_t kShort = 24;
  // A name to look up; of a short one also its bytes as words, with zeros in front.
  struct Name {
    const char* data;
    size_t size;
    uint64_t hash, words[3];
    std::string_view text() const { return {data, size}; }
  };
  // A slot holds what a look-up needs, so that it touches the table and the name and nothing else.
  struct Slot {
    uint32_t tag = 0, column = 0;  // column + 1; 0 = free
    uint64_t begin : 40;           // where the name is in bytes_
    uint64_t size : 24;
    Slot() : begin(0), size(0) {}
    Slot(uint32_t t, uint32_t c, uint64_t b, uint64_t s) : tag(t), column(c), begin(b), size(s) {}
  };
  int64_t locate(std::string_view name, uint64_t hash, bool grow);
  static uint64_t hash_of(std::string_view name);
  // What is kept in model files (columns of hashed names) rests on a hash that never changes; the table does not.
  int64_t bucket(std::string_view name) const { return int64_t(hash_bytes(name) >> (64 - n_bits_)); }
  size_t home(uint64_t hash) const { return size_t(hash) & (slots_.size() - 1); }
  bool crowded(size_t capacity) const { return ends_.size() * 3 > capacity * 2; }
  void prepare();  // makes the table where there is none
  void rehash(size_t capacity);
  int n_bits_;
  std::string bytes_;
  NameEnds ends_;
  std::vector<Slot, HugePages<Slot>> slots_;
  // Short names that were looked up lately, in a table that stays near the processor: a few names are most of any text.
  struct Recent {
    uint64_t words[3] = {0, 0, 0};
    uint32_t size = kShort + 1;  // of no short name
    int32_t column = 0;          // -1: it is not in the table
    bool is(const Name& name) const {
      return size == name.size && words[0] == name.words[0] && words[1] == name.words[1] && words[2] == name.words[2];
    }
  };
  static constexpr size_t kRecent = size_t(1) << 15;
  std::vector<Recent, HugePages<Recent>> recent_;
  bool recent_unknown_ = false;  // one of them is not in the table
};

// Stacked rows as they are read. A row is sorted by column when it is closed; equal columns are added.
struct TokenRows {
  Buffer<int64_t> offsets;   // of sequences
  GrowingRows<double> rows;  // values are kept only once one other than 1 was met
  bool all_ones = true;

  TokenRows() { offsets.push(0); }
  // The next row. Columns below 0 are left out; without values all are 1.
  void close(const int32_t* columns, const double* values, size_t size);

 private:
  bool take_in_order(const int32_t* columns, const double* values, size_t size);
  void take_sorted(const int32_t* columns, const double* values, size_t size);
  // Names made by one template stand in one order in every row: the order that sorted the last row is tried first.
  std::vector<uint32_t> order_, sorted_;
  bool identity_ = true;  // order_ is 0, 1, 2, …
};

// Bytes of a name or of a part of one. `roomy`: the 32 bytes before them may be read too, whatever they hold, so that
// short texts are read and copied without a loop. The header of a Python string is such room.
struct Text {
  static constexpr size_t kRoom = 32;
  const char* data = nullptr;
  size_t size = 0;
  bool roomy = false;
};

// Names of features, looked up many at a time: by the time one is compared, the places in memory that its look-up
// touches are on their way for all of them. What `add` is given must stay where it is until `settle`: call that
// before anything that may run Python code.
class NameBatch {
 public:
  NameBatch(Vocabulary& vocabulary, bool grow, TokenRows& out);
  void add(const Text& name, double value = 1.0) {
    if (name.roomy)
      push(name.data, name.size, value);
    else
      add_copy(std::string_view(name.data, name.size), value);
  }
  void add_copy(std::string_view name, double value);
  // One name of several parts.
  void add_joined(const Text* parts, size_t n_parts) {
    size_t size = 0;
    for (size_t k = 0; k < n_parts; ++k) size += parts[k].size;
    char* at = room(size);
    for (size_t k = n_parts; k-- > 0;) at = before(at, parts[k]);
    take(at, size);
  }
  // key + separator + text
  void add_pair(const Text& key, char separator, const Text& text) {
    const size_t size = key.size + 1 + text.size;
    char* at = before(room(size), text);
    *--at = separator;
    take(before(at, key), size);
  }
  void close_row();
  void close_sequence() { out_.offsets.push(rows_); }
  void settle();

 private:
  static constexpr size_t kItems = 384, kArena = size_t(1) << 15;
  // Where a name of this size ends that is to be put together.
  char* room(size_t size) {
    if (size_t(top_ - arena_.data()) < size + Text::kRoom) make_room(size);
    return top_;
  }
  void make_room(size_t size);
  // Writes the text so that it ends there; returns where it begins.
  static char* before(char* end, const Text& text) {
    if (text.roomy && text.size <= Text::kRoom)
      std::memcpy(end - Text::kRoom, text.data + text.size - Text::kRoom, Text::kRoom);
    else if (text.size)
      std::memcpy(end - text.size, text.data, text.size);
    return end - text.size;
  }
  void take(char* begin, size_t size) {
    top_ = begin;
    push(begin, size, 1.0);
  }
  void push(const char* data, size_t size, double value) {
    items_[n_items_].data = data;
    items_[n_items_].size = size;
    if (value != 1.0 && !weighted_) weigh();
    if (weighted_) values_[n_items_] = value;
    if (++n_items_ == kItems) settle();
  }
  void weigh();
  void find_columns(int32_t* found);
  Vocabulary& v_;
  const bool grow_;
  TokenRows& out_;
  int64_t rows_ = 0;  // read so far
  // Names that had to be put together, from the end of the arena downwards: a part is written with room before it, and
  // the next one over that.
  std::vector<char> arena_;
  char* top_;
  std::vector<Vocabulary::Name> items_;
  size_t n_items_ = 0;
  std::vector<uint32_t> missed_;  // items that are not among the recent ones
  std::vector<double> values_;    // of the items, once one is not 1
  bool weighted_ = false;
  std::vector<uint32_t> row_ends_;
  // Found: those of a row that is not closed, and then those of the items.
  std::vector<int32_t> columns_;
  std::vector<double> found_values_;
  size_t open_ = 0;
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
