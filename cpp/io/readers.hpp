// Files to blocks of hashed examples, straight from the bytes: text, Vowpal Wabbit's format, svmlight, CSV, JSON lines.
//
//   bytes of a chunk → records (lines) → label, weight, features (hash, value) → Examples
//
// What a feature's hash is (s the seed, h = feature_hash of cpp/hashing/feature_hash.hpp):
//
//   text        as TextAnalyzer says
//   vw          h(name, s) in the default namespace, combine(h(namespace, s), h(name, s)) in another; numbers as names
//               are names
//   svmlight    the column's number, counted from 0, below 2^n_bits; h(number, s) beyond
//   csv, jsonl  a text field: as text, combined with h(field, s) where there are several; a number: h(field, s) with
//               the number as value; a category: combine(h(field, s), h(category, s)); true and false of JSON are
//               the numbers 1 and 0; numbers with a code: see NumberCode
//
// A record may be cut by the end of a chunk at any byte: what is left over waits for the next chunk, and no byte is
// searched twice for the end of its record.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "io/example_batch.hpp"
#include "io/json_scan.hpp"
#include "hashing/substrings.hpp"

namespace mercer {

enum class FileFormat { text, vw, svmlight, csv, jsonl };

// A column or field: by its name, or by its place (negative: from the end).
using FieldRef = std::variant<int64_t, std::string>;

// How the numbers of a field become features. v clipped to the outer knots lies between two neighbours:
//   h(field)                      (v − mean) / scale, clipped to ±5
//   combine(h(field), h(knot j))  1 − f and f for the knots around it, f the place of v between them
// A score is then a piecewise linear function of the number, and large numbers do not outweigh small ones.
struct NumberCode {
  double mean = 0, scale = 1;
  std::vector<double> knots;
};

// Dates are numbers (days) with such a code, and their month, day of the week and hour are categories.
enum class DateOrder { none, ymd, dmy, mdy };

struct ReaderSettings {
  FileFormat format = FileFormat::text;
  TextSettings text;
  std::optional<StringSettings> strings;  // substrings in the place of words
  int copies = 1;                         // of every feature
  bool numeric = false;                   // targets are numbers, not names of classes
  bool label_required = true;
  bool skip_malformed = false;  // else the first malformed record ends the reading
  int64_t limit = -1;           // examples to read; -1: all
  // text: where the label stands and what separates it from the text
  enum class Place { none, first, last } label_place = Place::first;
  char separator = '\t';     // of text, and of the columns of csv
  bool header = true;        // csv
  int64_t width = 0;         // csv without a header: columns of most lines; 0: as many as the first has
  bool zero_based = false;   // svmlight
  bool label_sets = false;   // svmlight: a label may be several, with commas between them
  uint64_t own_columns = 0;  // svmlight: columns below this are their own hashes, as the columns of an array are
  // csv and jsonl; an empty optional follows the rule in `resolve`
  bool has_label = true;
  std::optional<FieldRef> label;
  std::optional<std::vector<FieldRef>> texts, columns;
  bool rest = false;                  // all fields that have no other part are features
  std::vector<FieldRef> categorical;  // columns whose numbers are names
  std::vector<std::string> ignored;   // fields that are nothing, whatever `rest` says
  std::map<std::string, NumberCode, std::less<>> numbers;
  std::map<std::string, DateOrder, std::less<>> dates;
  int64_t known_columns = -1;  // svmlight: columns beyond are passed over and counted
  bool gather = false;         // keeps the hashes of categories
  bool know = false;           // counts categories that are not among `known`
  std::vector<uint64_t> known;
  bool keep_lines = false;  // tells where lines without an example were
};

// A set of 64-bit hashes up to a certain size; full, it knows nothing any more.
class HashSet {
 public:
  static constexpr size_t most = size_t(1) << 17;
  // Most are there already, and at their own place.
  void insert(uint64_t hash) {
    if (!full_ && (slots_.empty() || slots_[hash & (slots_.size() - 1)] != hash || !hash)) add(hash);
  }
  bool contains(uint64_t hash) const;
  bool full() const { return full_; }
  std::vector<uint64_t> sorted() const;

 private:
  void add(uint64_t hash);

  std::vector<uint64_t> slots_;
  size_t size_ = 0;
  bool full_ = false, has_zero_ = false;
};

// Where records end. Quotes matter in csv only: between them a line end is text.
class RecordSplitter {
 public:
  RecordSplitter(bool quotes, char delimiter) : quotes_(quotes), delimiter_(delimiter) {}

  void start(std::string_view chunk, bool last);
  // The end (line end included) of the record that goes on at `from`, or npos if the chunk ends first.
  size_t find(size_t from);
  static constexpr size_t npos = std::string_view::npos;

 private:
  enum class State { field_start, unquoted, quoted, after_quote, after_return };
  size_t next(char c, size_t from, size_t& known) const;
  size_t line_end(size_t place);
  size_t walk(size_t from);

  bool quotes_, last_ = false;
  char delimiter_;
  std::string_view chunk_;
  State state_ = State::field_start;
  bool within_ = false;                          // in the middle of a record that an earlier chunk began
  size_t newline_ = 0, return_ = 0, quote_ = 0;  // the next of each, once known
};

// Names of labels to numbers, for one block.
class LabelTable {
 public:
  void clear();
  int32_t number(std::string_view name, std::vector<std::string>& names);

 private:
  std::vector<int32_t> slots_;
  int32_t before_ = -1;
};

class ExampleReader {
 public:
  explicit ExampleReader(ReaderSettings settings);
  void take_label_sets() { settings_.label_sets = true; }

  // All examples of the records that end in this chunk, together with what was left of the one before.
  Examples feed(std::string_view chunk, bool last);

  struct Problem {
    int64_t line;
    std::string what;
  };
  const std::optional<Problem>& error() const { return error_; }
  const std::vector<Problem>& skipped() const { return skipped_; }
  int64_t n_skipped() const { return n_skipped_; }
  int64_t n_examples() const { return n_examples_; }
  int64_t n_columns() const { return n_columns_; }  // svmlight: one more than the largest
  int64_t n_lines() const { return next_line_ - 1; }
  bool done() const { return finished_ || error_ || (settings_.limit >= 0 && n_examples_ >= settings_.limit); }
  // csv and jsonl, once the first record is read: label, texts, columns; nothing before.
  struct Fields {
    std::optional<std::string> label;
    std::vector<std::string> texts, columns;
    bool rest = false;
  };
  const std::optional<Fields>& fields() const { return resolved_; }
  int64_t n_unseen_columns() const { return n_unseen_columns_; }
  int64_t n_unseen_categories() const { return n_unseen_categories_; }
  const std::vector<std::string>& unseen_categories() const { return unseen_; }  // the first few
  const HashSet& categories() const { return categories_; }
  // Of the last chunk: lines without an example, and how many examples of the chunk stood before each.
  struct Gap {
    int64_t before;
    std::string line;
  };
  const std::vector<Gap>& gaps() const { return gaps_; }

 private:
  struct Field {
    enum class Role { ignored, label, text, record } role = Role::ignored;
    std::string name;
    uint64_t hash = 0;
    bool categorical = false;
    DateOrder date = DateOrder::none;
    const NumberCode* code = nullptr;
    std::vector<uint64_t> knot_hashes;
  };
  struct Value {  // of a field in the record at hand
    Json kind = Json::null;
    bool present = false;
    std::string_view text;
    double number = 0;
    std::string scratch;
    std::vector<std::string> items;  // of an array: its strings and numbers
  };

  void record(std::string_view bytes);
  void parse(std::string_view line);
  void parse_text(std::string_view line);
  void parse_vw(std::string_view line);
  void vw_label(const char* p, const char* bar);
  void vw_namespace(const char* start, const char*& p, const char* end);
  void parse_svmlight(std::string_view line);
  void parse_csv(std::string_view line);
  void split_csv(std::string_view line);
  void csv_header();
  void parse_jsonl(std::string_view line);
  void json_fields(JsonScanner& json, const std::string& prefix, int depth);
  void json_object_below(JsonScanner& json, const std::string& prefix, int depth);
  void json_value(JsonScanner& json, Value& value);
  void json_items(JsonScanner& json, Value& value);
  void json_first(std::string_view line);

  void resolve(const std::vector<std::string>& names);
  std::string name_of(const FieldRef& ref, const std::vector<std::string>& names, const char* part) const;
  void analyse(std::string_view document);
  void analyse(const Field& field, std::string_view document);
  void category(const Field& field, std::string_view value);
  void category(uint64_t field, std::string_view name, std::string_view value);
  void number(const Field& field, double value);
  bool date(const Field& field, std::string_view value);
  void gap(std::string_view line);
  void feature(uint64_t hash, double value, int64_t column);
  void set_label(std::string_view name);
  void set_number_label(std::string_view text);
  void finish(double weight = 1);
  void roll_back();

  ReaderSettings settings_;
  DocumentAnalyzer analyzer_;
  RecordSplitter splitter_;
  LabelTable labels_;
  Examples block_;
  std::string pending_, scratch_;
  const char* readable_ = nullptr;  // one past what may be loaded around the record at hand
  std::vector<std::string_view> cells_;
  std::vector<Field> fields_;
  std::map<std::string, int, std::less<>> places_;
  std::vector<Value> values_;
  Value extra_;
  std::string key_;
  std::optional<Fields> resolved_;
  int64_t n_texts_ = 0;
  bool dotted_ = false;  // a field inside an object inside the object has a part
  // the example at hand
  std::string_view label_;
  std::string label_scratch_;
  bool labelled_ = false;
  double target_ = 0;

  int64_t line_ = 1, next_line_ = 1, n_examples_ = 0, n_skipped_ = 0, n_columns_ = 0;
  int64_t n_unseen_columns_ = 0, n_unseen_categories_ = 0;
  std::vector<std::string> unseen_;
  HashSet categories_, known_;
  std::vector<Gap> gaps_;
  bool finished_ = false;
  size_t expected_ = 0, n_hashes_ = 0;
  std::optional<Problem> error_;
  std::vector<Problem> skipped_;
};

}  // namespace mercer
