// Feature names to columns: a growing table of strings, or hashing into 2^n_bits buckets; and the reading of Python tokens.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mercer {

class Vocabulary {
 public:
  // n_bits == 0: a table of the names seen; otherwise names are hashed and nothing is kept.
  explicit Vocabulary(int n_bits) : n_bits_(n_bits) { slots_.assign(64, 0); }

  int n_bits() const { return n_bits_; }
  int64_t size() const { return n_bits_ ? int64_t(1) << n_bits_ : int64_t(ends_.size()); }
  std::string_view name(int64_t i) const {
    const size_t begin = i ? ends_[i - 1] : 0;
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }
  // The column of a name; -1 if it is not in the table and the table is not to grow.
  int64_t column(std::string_view name, bool grow);
  // Puts the names into byte order; returns the new column of each old one.
  std::vector<int32_t> sort();
  const std::string& bytes() const { return bytes_; }
  const std::vector<uint64_t>& ends() const { return ends_; }

 private:
  void rehash(size_t capacity);
  int n_bits_;
  std::string bytes_;
  std::vector<uint64_t> ends_;
  std::vector<uint32_t> hashes_, slots_;  // a slot holds column + 1, 0 = free
};

// Stacked rows as they are read. A row is sorted by column when it is closed; equal columns are added.
struct RowsBuilder {
  std::vector<int64_t> offsets{0}, indptr{0};
  std::vector<int32_t> indices;
  std::vector<double> values;  // kept only once a value other than 1 was met
  bool all_ones = true;

  void add(int64_t column, double value);
  void close_row();
  void close_sequence() { offsets.push_back(int64_t(indptr.size()) - 1); }

 private:
  std::vector<std::pair<int32_t, double>> row_;
};

// A feature template as pieces: literals and (row, column) references. See mercer.data.conll.Template.
struct TemplatePiece {
  std::string literal;
  int row = 0, column = -1;  // column == -1: a literal
};
using TemplatePattern = std::vector<TemplatePiece>;

// Each returns false with a Python exception set. The message names the sequence and the token.
// Tokens: dict {name: str | number | bool | None | list of str}, list / tuple of str, or one str.
bool read_tokens(PyObject* sequences, Vocabulary& vocabulary, bool grow, RowsBuilder& out);
// Sentences of tuples of columns, expanded by the patterns.
bool read_columns(PyObject* sentences, const std::vector<TemplatePattern>& patterns, Vocabulary& vocabulary, bool grow,
                  RowsBuilder& out);

}  // namespace mercer
