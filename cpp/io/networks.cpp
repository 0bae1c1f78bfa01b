// Files of graphical models, straight from the bytes: networks in BIF, factors in UAI.
//
//   bytes → words → variables with their states, scopes, tables in one array
//
// Nothing is allocated that the file does not pay for: a table is laid out when its rows are there, and a number of
// entries is compared with the bytes that follow. An error is a word and what should stand there; its line is counted
// then.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/arrays.hpp"
#include "io/numbers.hpp"

namespace mercer {

namespace {

constexpr int64_t kMostEntries = int64_t(1) << 26;  // of tables, where default rows fill one
constexpr int kLargestScope = 60;
constexpr double kRowTolerance = 1e-6;

struct WrongFile {
  size_t place;  // in the bytes; its line is named
  std::string what;
};

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::string quoted(std::string_view text) {
  std::string out = "'";
  for (char c : text.substr(0, 80)) {
    char escaped[8];
    if (uint8_t(c) < 0x20 || c == 0x7F || c == '\'' || c == '\\') {
      std::snprintf(escaped, sizeof escaped, c == '\'' || c == '\\' ? "\\%c" : "\\x%02x",
                    c == '\'' || c == '\\' ? c : int(uint8_t(c)));
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + (text.size() > 80 ? "…'" : "'");
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

// Lines end with \n, \r or both.
int64_t line_of(std::string_view bytes, size_t place) {
  int64_t line = 1;
  for (size_t i = 0; i < std::min(place, bytes.size()); ++i)
    line += bytes[i] == '\n' || (bytes[i] == '\r' && !(i + 1 < bytes.size() && bytes[i + 1] == '\n'));
  return line;
}

nb::str decoded(std::string_view text) {
  PyObject* made = PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "replace");
  if (!made) throw nb::python_error();
  return nb::steal<nb::str>(made);
}

// ValueError(":line: what"): the name of the file goes in front.
[[noreturn]] void raise(std::string_view bytes, const WrongFile& wrong) {
  const nb::str message = decoded(":" + std::to_string(line_of(bytes, wrong.place)) + ": " + wrong.what);
  PyErr_SetObject(PyExc_ValueError, message.ptr());
  throw nb::python_error();
}

std::string_view without_mark(std::string_view bytes) {
  return bytes.substr(0, 3) == "\xEF\xBB\xBF" ? bytes.substr(3) : bytes;
}

std::string_view view_of(const nb::bytes& file) { return without_mark({file.c_str(), file.size()}); }

// ---------------------------------------------------------------------------------------------------------------- BIF

struct Network {
  struct Variable {
    std::string_view name;
    std::vector<std::string_view> states;
    std::unordered_map<std::string_view, int32_t> index;  // of the states, where they are many
    std::vector<int32_t> parents;
    int64_t start = -1;  // of its table; −1: it has none

    int32_t state(std::string_view named) const {
      if (!index.empty()) {
        const auto found = index.find(named);
        return found == index.end() ? -1 : found->second;
      }
      for (size_t k = 0; k < states.size(); ++k)
        if (states[k] == named) return int32_t(k);
      return -1;
    }
  };
  std::vector<Variable> variables;
  std::vector<double> tables;
};

// Words: a mark {}()[];,| by itself, a text in quotation marks, or what stands between marks and spaces.
class BifReader {
 public:
  explicit BifReader(std::string_view bytes) : bytes_(bytes), end_(bytes.data() + bytes.size()), p_(bytes.data()) {
    advance();
  }

  Network read() {
    while (!ended()) {
      const std::string_view kind = take("a block");
      if (kind == "network")
        network();
      else if (kind == "variable")
        variable();
      else if (kind == "probability")
        probability();
      else
        fail("expected network, variable or probability, found " + quoted(kind));
    }
    if (net_.variables.empty()) fail("the file has no variables");
    for (const auto& v : net_.variables)
      if (v.start < 0) fail("variable " + quoted(v.name) + " has no table");
    refuse_cycles();
    return std::move(net_);
  }

 private:
  static bool is_mark(char c) {
    return c == '{' || c == '}' || c == '(' || c == ')' || c == '[' || c == ']' || c == ';' || c == ',' || c == '|';
  }
  [[noreturn]] void fail(std::string what) const { throw WrongFile{last_, std::move(what)}; }
  [[noreturn]] void fail_here(std::string what) const { throw WrongFile{size_t(p_ - bytes_.data()), std::move(what)}; }
  bool ended() const { return word_.data() == nullptr; }

  // The next word into word_; no text at the end of the file.
  void advance() {
    while (true) {
      while (p_ < end_ && is_space(*p_)) ++p_;
      if (p_ + 1 < end_ && p_[0] == '/' && p_[1] == '/') {
        while (p_ < end_ && *p_ != '\n' && *p_ != '\r') ++p_;
      } else if (p_ + 1 < end_ && p_[0] == '/' && p_[1] == '*') {
        const size_t from = size_t(p_ - bytes_.data()), close = bytes_.find("*/", from + 2);
        if (close == std::string_view::npos) fail_here("a comment that begins here does not end");
        p_ = bytes_.data() + close + 2;
      } else {
        break;
      }
    }
    const char* const start = p_;
    if (p_ == end_) {
      word_ = {};
      return;
    }
    if (*p_ == '"') {
      do ++p_;
      while (p_ < end_ && *p_ != '"' && *p_ != '\n' && *p_ != '\r');
      if (p_ == end_ || *p_ != '"') {
        p_ = start;
        fail_here("a quotation mark that begins here does not end on its line");
      }
      ++p_;
    } else if (is_mark(*p_)) {
      ++p_;
    } else {
      while (p_ < end_ && !is_space(*p_) && !is_mark(*p_) && *p_ != '"') ++p_;
    }
    word_ = {start, size_t(p_ - start)};
  }

  std::string_view take(const char* what) {
    if (ended()) fail(std::string("the file ends where ") + what + " should be");
    const std::string_view word = word_;
    last_ = size_t(word.data() - bytes_.data());
    advance();
    return word;
  }
  bool at(char mark) const { return word_.size() == 1 && word_[0] == mark; }
  void expect(std::string_view wanted) {
    if (ended()) fail("the file ends where " + quoted(wanted) + " should be");
    const std::string_view found = take("");
    if (found != wanted) fail("expected " + quoted(wanted) + ", found " + quoted(found));
  }
  std::string_view name(const char* what) {
    const std::string_view word = take(what);
    if (word.size() == 1 && is_mark(word[0])) fail(std::string("expected ") + what + ", found " + quoted(word));
    return word[0] == '"' ? word.substr(1, word.size() - 2) : word;
  }
  // Names up to a mark, with or without commas between them.
  void names(char stop, const char* what, std::vector<std::string_view>& found) {
    found.clear();
    while (!at(stop)) {
      if (!found.empty() && at(',')) take("','");
      found.push_back(name(what));
    }
    take("");
  }

  double probability_of(std::string_view word) const {
    double value = 0;
    if (!whole_number(word, value)) fail("expected a probability, found " + quoted(word));
    if (!std::isfinite(value) || value < 0)
      fail("a probability must be finite and at least 0, found " + std::string(word));
    return value;
  }
  // Numbers up to a semicolon, to the end of `out`; the words of a plain list are not looked for twice.
  int64_t numbers(std::vector<double>& out) {
    const size_t before = out.size();
    while (!at(';')) {
      if (out.size() > before && at(',')) take("','");
      out.push_back(probability_of(name("a probability")));
      if (!at(',')) continue;
      while (true) {  // p_ stands behind a comma
        const char* p = p_;
        while (p < end_ && *p == ' ') ++p;
        double value = 0;
        const char* const stop = p < end_ && (is_digit(*p) || *p == '.') ? read_number(p, end_, value) : nullptr;
        if (!stop || stop == end_ || (*stop != ',' && *stop != ';') || !std::isfinite(value)) break;
        out.push_back(value);
        last_ = size_t(p - bytes_.data());
        word_ = {stop, 1};
        p_ = stop + 1;
        if (*stop == ';') break;
      }
    }
    take("");
    return int64_t(out.size() - before);
  }

  bool skip_property() {
    if (word_ != "property") return false;
    while (take("';'") != ";") {}
    return true;
  }

  void network() {
    if (!at('{')) name("the name of the network");
    expect("{");
    while (!at('}'))
      if (!skip_property()) fail("expected a property or '}', found " + quoted(take("a property")));
    expect("}");
  }

  void variable() {
    Network::Variable made;
    made.name = name("the name of a variable");
    if (places_.count(made.name)) fail("variable " + quoted(made.name) + " appears twice");
    expect("{");
    bool typed = false;
    while (!at('}')) {
      if (skip_property()) continue;
      expect("type");
      expect("discrete");
      expect("[");
      const std::string_view count = name("the number of states");
      expect("]");
      expect("{");
      names('}', "the name of a state", made.states);
      if (std::to_string(made.states.size()) != count)
        fail("variable " + quoted(made.name) + " has [ " + std::string(count) + " ] states, but " +
             std::to_string(made.states.size()) + " are named");
      set_index(made);
      expect(";");
      typed = true;
    }
    expect("}");
    if (!typed) fail("variable " + quoted(made.name) + " has no type");
    if (made.states.empty()) fail("variable " + quoted(made.name) + " needs at least one state");
    places_.emplace(made.name, int32_t(net_.variables.size()));
    net_.variables.push_back(std::move(made));
  }
  void set_index(Network::Variable& v) const {
    v.index.clear();
    for (size_t k = 0; k < v.states.size(); ++k) {
      const bool twice = v.states.size() > 8 ? !v.index.emplace(v.states[k], int32_t(k)).second
                                             : std::find(v.states.begin(), v.states.begin() + int64_t(k),
                                                         v.states[k]) != v.states.begin() + int64_t(k);
      if (twice) fail("variable " + quoted(v.name) + " has a state twice: " + quoted(v.states[k]));
    }
  }
  int32_t known(std::string_view named) const {
    const auto found = places_.find(named);
    if (found == places_.end()) fail("there is no variable " + quoted(named) + " before this line");
    return found->second;
  }

  struct Rows {
    std::vector<int64_t> places;  // which combination of the parents each row is for
    std::vector<double> values;   // rows end to end
    bool whole = false;           // `values` is the table
    std::vector<double> other;    // the default row
  };

  void probability() {
    expect("(");
    const int32_t v = known(name("the name of a variable"));
    std::vector<int32_t> parents;
    if (at('|')) {
      take("'|'");
      names(')', "the name of a parent", words_);
      for (std::string_view word : words_) parents.push_back(known(word));
    } else {
      expect(")");
    }
    Network::Variable& own = net_.variables[size_t(v)];
    if (own.start >= 0) fail("variable " + quoted(own.name) + " has two tables");
    check_parents(v, parents);
    const int64_t card = int64_t(own.states.size());
    double count = 1;  // of rows, exact up to 2^53
    for (int32_t u : parents) count *= double(net_.variables[size_t(u)].states.size());
    Rows rows;
    expect("{");
    while (!at('}')) {
      if (skip_property()) continue;
      const std::string_view found = take("a row of the table");
      if (found == "table") {
        rows.values.clear(), rows.places.clear();
        whole(own, count, rows.values);
        rows.whole = true;
      } else if (found == "default") {
        rows.other.clear();
        row(own, rows.other);
      } else if (found == "(") {
        if (rows.whole) fail("the table of " + quoted(own.name) + " was given whole: there can be no further row");
        rows.places.push_back(place_of(own, parents));
        row(own, rows.values);
      } else {
        fail("expected table, default or the states of the parents in parentheses, found " + quoted(found));
      }
    }
    expect("}");
    own.start = int64_t(net_.tables.size());
    if (rows.whole)
      lay_out_whole(card, rows.values);
    else
      lay_out(own, parents, count, rows);
    own.parents = std::move(parents);
  }
  void check_parents(int32_t v, const std::vector<int32_t>& parents) {
    const std::string_view named = net_.variables[size_t(v)].name;
    seen_.resize(net_.variables.size(), -1);
    seen_[size_t(v)] = ++stamp_;
    for (int32_t u : parents) {
      if (seen_[size_t(u)] == stamp_)
        fail("the parents of " + quoted(named) +
             " must be different from each other and from it: " + quoted(net_.variables[size_t(u)].name) + " is not");
      seen_[size_t(u)] = stamp_;
    }
  }
  int64_t place_of(const Network::Variable& own, const std::vector<int32_t>& parents) {
    names(')', "the state of a parent", words_);
    if (words_.size() != parents.size())
      fail(quoted(own.name) + " has " + std::to_string(parents.size()) + " parents, but the row names " +
           std::to_string(words_.size()) + " states");
    int64_t place = 0;
    for (size_t k = 0; k < parents.size(); ++k) {
      const Network::Variable& parent = net_.variables[size_t(parents[k])];
      const int32_t state = parent.state(words_[k]);
      if (state < 0) {
        std::string listed;
        for (size_t j = 0; j < parent.states.size() && j < 12; ++j)
          listed += (j ? ", " : "") + quoted(parent.states[j]);
        fail("variable " + quoted(parent.name) + " has no state " + quoted(words_[k]) + ": its states are [" + listed +
             (parent.states.size() > 12 ? ", …]" : "]"));
      }
      // Wraps for tables that are refused below.
      place = int64_t(uint64_t(place) * uint64_t(parent.states.size()) + uint64_t(state));
    }
    return place;
  }
  void row(const Network::Variable& own, std::vector<double>& out) {
    const int64_t card = int64_t(own.states.size()), found = numbers(out);
    if (found != card)
      fail(quoted(own.name) + " has " + std::to_string(card) + " states, but the row has " + std::to_string(found) +
           " probabilities");
    double total = 0;
    for (int64_t k = 0; k < card; ++k) total += out[out.size() - size_t(card) + size_t(k)];
    if (!(std::fabs(total - 1) <= kRowTolerance))
      fail("the probabilities of " + quoted(own.name) + " must sum to 1, they sum to " + short_number(total));
  }
  // All entries, the variable itself changing slowest: its states, then those of the parents.
  void whole(const Network::Variable& own, double count, std::vector<double>& values) {
    const double wanted = count * double(own.states.size());
    const int64_t found = numbers(values);
    if (double(found) != wanted)
      fail("the table of " + quoted(own.name) + " needs " + short_entries(wanted) + " entries, found " +
           std::to_string(found));
    const int64_t rows = int64_t(count);
    for (int64_t r = 0; r < rows; ++r) {
      double total = 0;
      for (int64_t at = r; at < found; at += rows) total += values[size_t(at)];
      if (!(std::fabs(total - 1) <= kRowTolerance))
        fail("the probabilities of " + quoted(own.name) + " must sum to 1 for all states of its parents");
    }
  }
  static std::string short_entries(double count) {
    return count < 1e15 ? std::to_string(int64_t(count)) : short_number(count);
  }

  void push_row(const double* values, int64_t card, int64_t step) {
    double total = 0;
    for (int64_t k = 0; k < card; ++k) total += values[k * step];
    for (int64_t k = 0; k < card; ++k) net_.tables.push_back(values[k * step] / total);
  }
  void lay_out_whole(int64_t card, const std::vector<double>& values) {
    const int64_t rows = int64_t(values.size()) / card;
    for (int64_t r = 0; r < rows; ++r) push_row(values.data() + r, card, rows);
  }
  // The last row of a combination counts; what no row is for gets the default.
  void lay_out(const Network::Variable& own, const std::vector<int32_t>& parents, double count, const Rows& given) {
    const int64_t card = int64_t(own.states.size());
    const bool everything = !given.other.empty();
    if (double(net_.tables.size()) + count * double(card) > double(kMostEntries) &&
        (everything || count > double(given.places.size())))
      fail("the table of " + quoted(own.name) + " has " + short_entries(count * double(card)) +
           " entries, more than can be read");
    const int64_t rows = int64_t(count);
    bool ordered = int64_t(given.places.size()) == rows;
    for (int64_t r = 0; ordered && r < rows; ++r) ordered = given.places[size_t(r)] == r;
    if (ordered) {
      for (int64_t r = 0; r < rows; ++r) push_row(given.values.data() + r * card, card, 1);
      return;
    }
    if (!everything) {
      std::vector<int64_t> sorted = given.places;
      std::sort(sorted.begin(), sorted.end());
      int64_t missing = 0;
      for (int64_t place : sorted) missing += place == missing;
      if (missing < rows) fail("the table of " + quoted(own.name) + " has no row" + combination(parents, missing));
    }
    std::vector<int64_t> row_of(size_t(rows), -1);
    for (size_t r = 0; r < given.places.size(); ++r) row_of[size_t(given.places[r])] = int64_t(r);
    for (int64_t r = 0; r < rows; ++r)
      push_row(row_of[size_t(r)] < 0 ? given.other.data() : given.values.data() + row_of[size_t(r)] * card, card, 1);
  }
  std::string combination(const std::vector<int32_t>& parents, int64_t place) const {
    std::string text;
    for (size_t k = parents.size(); k-- > 0;) {
      const Network::Variable& parent = net_.variables[size_t(parents[k])];
      const int64_t states = int64_t(parent.states.size());
      text = std::string(parent.name) + "=" + std::string(parent.states[size_t(place % states)]) +
             (text.empty() ? "" : ", " + text);
      place /= states;
    }
    return text.empty() ? "" : " for " + text;
  }

  void refuse_cycles() const {
    const size_t n = net_.variables.size();
    std::vector<int32_t> waiting(n, 0), ready;
    std::vector<std::vector<int32_t>> children(n);
    for (size_t v = 0; v < n; ++v) {
      waiting[v] = int32_t(net_.variables[v].parents.size());
      for (int32_t u : net_.variables[v].parents) children[size_t(u)].push_back(int32_t(v));
      if (!waiting[v]) ready.push_back(int32_t(v));
    }
    for (size_t next = 0; next < ready.size(); ++next)
      for (int32_t child : children[size_t(ready[next])])
        if (--waiting[size_t(child)] == 0) ready.push_back(child);
    if (ready.size() == n) return;
    std::string listed;
    int shown = 0;
    for (size_t v = 0; v < n && shown < 8; ++v)
      if (waiting[v]) listed += (shown++ ? ", " : "") + quoted(net_.variables[v].name);
    fail("the arcs form a cycle among " + listed + (n - ready.size() > 8 ? ", …" : ""));
  }

  std::string_view bytes_;
  const char *end_, *p_;
  std::string_view word_;  // the next one
  size_t last_ = 0;        // where the last word that was taken stands
  Network net_;
  std::unordered_map<std::string_view, int32_t> places_;
  std::vector<std::string_view> words_;
  std::vector<int64_t> seen_;
  int64_t stamp_ = 0;
};

// (names, states of each, numbers of the parents of each, tables end to end, where the table of each begins)
nb::tuple read_bif(const nb::bytes& file) {
  const std::string_view bytes = view_of(file);
  Network net;
  try {
    nb::gil_scoped_release free;
    net = BifReader(bytes).read();
  } catch (const WrongFile& wrong) { raise(bytes, wrong); }
  nb::list names, states, parents;
  std::vector<int64_t> starts;
  for (const auto& v : net.variables) names.append(decoded(v.name));
  for (const auto& v : net.variables) {
    nb::list own;
    for (std::string_view state : v.states) own.append(decoded(state));
    states.append(nb::tuple(own));
    nb::list given;
    for (int32_t u : v.parents) given.append(names[size_t(u)]);
    parents.append(nb::tuple(given));
    starts.push_back(v.start);
  }
  return nb::make_tuple(names, states, parents, to_numpy(std::move(net.tables)), to_numpy(std::move(starts)));
}

// ---------------------------------------------------------------------------------------------------------------- UAI

class UaiReader {
 public:
  explicit UaiReader(std::string_view bytes) : bytes_(bytes), end_(bytes.data() + bytes.size()), p_(bytes.data()) {}

  std::vector<int32_t> cards, scopes;
  std::vector<int64_t> scope_starts{0}, table_starts;
  std::vector<double> tables;

  void read() {
    const std::string_view kind = word("MARKOV or BAYES");
    std::string upper(kind);
    for (char& c : upper) c = c >= 'a' && c <= 'z' ? char(c - 32) : c;
    if (upper != "MARKOV" && upper != "BAYES") fail("a UAI file begins with MARKOV or BAYES, found " + quoted(kind));
    const int64_t n = integer("the number of variables", -1, 0, INT32_MAX);
    for (int64_t v = 0; v < n; ++v)
      cards.push_back(int32_t(integer("the number of states of variable", v, 1, INT32_MAX)));
    const int64_t m = integer("the number of factors", -1, 0, INT32_MAX);
    std::vector<int64_t> seen(size_t(n), -1);
    for (int64_t f = 0; f < m; ++f) {
      const int64_t arity = integer("the number of variables of factor", f, 0, kLargestScope);
      for (int64_t k = 0; k < arity; ++k) {
        const int32_t v = int32_t(integer("a variable of factor", f, 0, n - 1));
        if (seen[size_t(v)] == f) fail("factor " + std::to_string(f) + " has a variable twice: " + std::to_string(v));
        seen[size_t(v)] = f;
        scopes.push_back(v);
      }
      scope_starts.push_back(int64_t(scopes.size()));
    }
    for (int64_t f = 0; f < m; ++f) table(f);
    if (skip_spaces()) {
      word("");
      fail("nothing should follow the last table");
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw WrongFile{last_, what}; }
  bool skip_spaces() {
    while (p_ < end_ && is_space(*p_)) ++p_;
    return p_ < end_;
  }
  std::string_view word(const std::string& what) {
    if (!skip_spaces()) fail("the file ends where " + what + " should be");
    const char* const start = p_;
    last_ = size_t(p_ - bytes_.data());
    while (p_ < end_ && !is_space(*p_)) ++p_;
    return {start, size_t(p_ - start)};
  }
  static std::string full(const char* what, int64_t of) {
    return of < 0 ? std::string(what) : std::string(what) + " " + std::to_string(of);
  }
  // `of` numbers the thing in messages, unless it is negative.
  int64_t integer(const char* what, int64_t of, int64_t least, int64_t most) {
    const std::string_view found = skip_spaces() ? word("") : word(full(what, of));
    int64_t value = 0;
    const size_t sign = !found.empty() && (found[0] == '-' || found[0] == '+');
    bool whole = found.size() > sign;
    for (char c : found.substr(sign)) {
      whole = whole && is_digit(c);
      if (whole) value = std::min<int64_t>(value * 10 + (c - '0'), int64_t(1) << 58);
    }
    if (!whole) fail(full(what, of) + " should be an integer, found " + quoted(found));
    if (found[0] == '-') value = -value;
    if (value < least || value > most)
      fail(full(what, of) + " should be from " + std::to_string(least) + " to " + std::to_string(most) + ", found " +
           std::string(found.substr(0, 40)));
    return value;
  }

  void table(int64_t f) {
    double wanted = 1;
    for (int64_t slot = scope_starts[size_t(f)]; slot < scope_starts[size_t(f) + 1]; ++slot)
      wanted *= double(cards[size_t(scopes[size_t(slot)])]);
    const int64_t size = integer("the number of entries of factor", f, 0, int64_t(1) << 57);
    const size_t counted = last_;
    if (double(size) != wanted) {
      std::string listed;
      for (int64_t slot = scope_starts[size_t(f)]; slot < scope_starts[size_t(f) + 1]; ++slot)
        listed += (listed.empty() ? "" : ", ") + std::to_string(scopes[size_t(slot)]);
      fail("factor " + std::to_string(f) + " over [" + listed + "] has " +
           (wanted < 1e15 ? std::to_string(int64_t(wanted)) : short_number(wanted)) + " entries, the file says " +
           std::to_string(size));
    }
    const char* const begin = p_;
    table_starts.push_back(int64_t(tables.size()));
    if (size > (end_ - p_ + 1) / 2) too_few(f, size, counted, begin);
    for (int64_t k = 0; k < size; ++k) {
      if (!skip_spaces()) too_few(f, size, counted, begin);
      double value = 0;
      const char* const stop = is_digit(*p_) || *p_ == '.' ? read_number(p_, end_, value) : nullptr;
      if (stop && (stop == end_ || is_space(*stop)) && std::isfinite(value)) {
        p_ = stop;
      } else {
        const std::string_view found = word("");
        if (!whole_number(found, value))
          fail("an entry of factor " + std::to_string(f) + " should be a number, found " + quoted(found));
        if (!std::isfinite(value) || value < 0)
          fail("an entry of factor " + std::to_string(f) + " should be finite and at least 0, found " +
               std::string(found.substr(0, 40)));
      }
      tables.push_back(value);
    }
  }
  [[noreturn]] void too_few(int64_t f, int64_t size, size_t counted, const char* begin) {
    p_ = begin;
    int64_t words = 0;
    for (; skip_spaces(); ++words)
      while (p_ < end_ && !is_space(*p_)) ++p_;
    throw WrongFile{counted, "factor " + std::to_string(f) + " has " + std::to_string(size) + " entries, but only " +
                                 std::to_string(words) + " words follow"};
  }

  std::string_view bytes_;
  const char *end_, *p_;
  size_t last_ = 0;
};

// (cards, scope_starts, scopes, table_starts, tables of potentials)
nb::tuple read_uai(const nb::bytes& file) {
  const std::string_view bytes = view_of(file);
  UaiReader reader(bytes);
  try {
    nb::gil_scoped_release free;
    reader.read();
  } catch (const WrongFile& wrong) { raise(bytes, wrong); }
  return nb::make_tuple(to_numpy(std::move(reader.cards)), to_numpy(std::move(reader.scope_starts)),
                        to_numpy(std::move(reader.scopes)), to_numpy(std::move(reader.table_starts)),
                        to_numpy(std::move(reader.tables)));
}

}  // namespace

void bind_networks(nb::module_& m) {
  m.def("read_bif", &read_bif, "file"_a);
  m.def("read_uai", &read_uai, "file"_a);
}

}  // namespace mercer
