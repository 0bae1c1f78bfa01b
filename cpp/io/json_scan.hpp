// A strict JSON scanner (RFC 8259) over one line: values are views of the line, or of a scratch string where escapes
// had to be resolved.
//
// Nothing is built: the caller walks the fields of an object and says which to look at; all else is checked and
// skipped.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "io/numbers.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace mercer {

// What is wrong with a record, and at which byte of it (from 1; 0 where a column says nothing).
struct Malformed {
  std::string what;
  int64_t column = 0;
};

enum class Json { null, boolean, number, string, object, array };

class JsonScanner {
 public:
  explicit JsonScanner(std::string_view line) : begin_(line.data()), p_(line.data()), end_(line.data() + line.size()) {}

  [[noreturn]] void fail(const std::string& what) const { throw Malformed{what, p_ - begin_ + 1}; }

  void expect(char c, const char* what) {
    skip_space();
    if (p_ == end_ || *p_ != c) fail(std::string("expected ") + what + found());
    ++p_;
  }
  bool accept(char c) {
    skip_space();
    if (p_ == end_ || *p_ != c) return false;
    ++p_;
    return true;
  }
  void expect_end() {
    skip_space();
    if (p_ != end_) fail("expected the end of the line" + found());
  }

  Json peek() {
    skip_space();
    if (p_ == end_) fail("expected a value, found the end of the line");
    switch (*p_) {
      case '"': return Json::string;
      case '{': return Json::object;
      case '[': return Json::array;
      case 't':
      case 'f': return Json::boolean;
      case 'n': return Json::null;
      default:
        if (*p_ == '-' || is_digit(*p_)) return Json::number;
        fail("expected a value" + found());
    }
  }

  // The string at hand; scratch is used only if it has escapes, and must live as long as the view.
  std::string_view string(std::string& scratch) {
    expect('"', "'\"'");
    const char* const start = p_;
    p_ = plain_end();
    if (p_ < end_ && *p_ == '"') return {start, size_t(p_++ - start)};
    scratch.assign(start, p_);
    while (true) {
      if (p_ == end_) fail("expected '\"' at the end of a string, found the end of the line");
      if (*p_ == '"') break;
      if (uint8_t(*p_) < 0x20)
        fail("expected no control character inside a string (byte " + std::to_string(int(*p_)) + ")");
      escape(scratch);
      const char* const from = p_;
      p_ = plain_end();
      scratch.append(from, p_);
    }
    ++p_;
    return scratch;
  }

  // The text of a number, checked against JSON's grammar.
  std::string_view number(double& value) {
    skip_space();
    const char* const start = p_;
    const char* q = p_ + (p_ < end_ && *p_ == '-');
    if (q == end_ || !is_digit(*q)) fail("expected a number" + found());
    if (*q == '0' && q + 1 < end_ && is_digit(q[1])) fail("expected a number without a leading zero");
    const char* const after = read_number(start, end_, value);
    const char* const point = static_cast<const char*>(std::memchr(start, '.', size_t(after - start)));
    if (point && (point + 1 == after || !is_digit(point[1]))) fail("expected a digit after the point of a number");
    p_ = after;
    if (p_ < end_ && (*p_ == 'e' || *p_ == 'E')) fail("expected a digit in the exponent of a number");
    return {start, size_t(after - start)};
  }

  bool boolean() { return *p_ == 't' ? (word("true"), true) : (word("false"), false); }
  void null() { word("null"); }

  void skip(int depth = 0) {
    if (depth > 200) fail("values are nested more than 200 levels deep");
    double ignored;
    switch (peek()) {
      case Json::null: return null();
      case Json::boolean: boolean(); return;
      case Json::number: number(ignored); return;
      case Json::string: string(skipped_); return;
      case Json::array:
        ++p_;
        if (accept(']')) return;
        do skip(depth + 1);
        while (accept(','));
        return expect(']', "',' or ']'");
      case Json::object:
        ++p_;
        if (accept('}')) return;
        do {
          skip_space();
          string(skipped_);
          expect(':', "':' after the name of a field");
          skip(depth + 1);
        } while (accept(','));
        return expect('}', "',' or '}'");
    }
  }

 private:
  void skip_space() {
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\t' || *p_ == '\n' || *p_ == '\r')) ++p_;
  }
  std::string found() const {
    if (p_ == end_) return ", found the end of the line";
    if (uint8_t(*p_) < 0x20 || uint8_t(*p_) >= 0x7F) return ", found byte " + std::to_string(int(uint8_t(*p_)));
    return std::string(", found '") + *p_ + "'";
  }
  void word(const char* expected) {
    const size_t n = std::strlen(expected);
    if (size_t(end_ - p_) < n || std::memcmp(p_, expected, n) != 0) fail(std::string("expected ") + expected);
    p_ += n;
  }
  // Where the run of bytes that stand for themselves ends: at a quote, a backslash, a control character, or the end.
  const char* plain_end() const {
    const char* p = p_;
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'), control = _mm_set1_epi8(0x1F);
    for (; end_ - p >= 16; p += 16) {
      const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
      const __m128i special = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(x, quote), _mm_cmpeq_epi8(x, backslash)),
                                           _mm_cmpeq_epi8(_mm_min_epu8(x, control), x));
      const int mask = _mm_movemask_epi8(special);
      if (mask) return p + __builtin_ctz(unsigned(mask));
    }
#endif
    while (p < end_ && *p != '"' && *p != '\\' && uint8_t(*p) >= 0x20) ++p;
    return p;
  }
  void escape(std::string& out) {
    static constexpr char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    ++p_;
    if (p_ == end_) fail("expected a character after '\\', found the end of the line");
    if (*p_ == 'u') return code_point(out);
    const char* const place = static_cast<const char*>(std::memchr(names, *p_, 8));
    if (!place) fail("expected one of \"\\/bfnrtu after '\\'" + found());
    out.push_back(values[place - names]);
    ++p_;
  }
  uint32_t four_digits() {
    uint32_t code = 0;
    ++p_;  // the u
    for (int i = 0; i < 4; ++i, ++p_) {
      const char c = p_ < end_ ? *p_ : ' ';
      const int digit = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) fail("expected four hexadecimal digits after '\\u'" + found());
      code = code << 4 | uint32_t(digit);
    }
    return code;
  }
  void code_point(std::string& out) {
    uint32_t code = four_digits();
    if (code >= 0xDC00 && code < 0xE000) fail("expected the first half of a surrogate pair before this one");
    if (code >= 0xD800 && code < 0xDC00) {
      if (end_ - p_ < 2 || p_[0] != '\\' || p_[1] != 'u') fail("expected the second half of a surrogate pair");
      ++p_;
      const uint32_t low = four_digits();
      if (low < 0xDC00 || low >= 0xE000) fail("expected the second half of a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    if (code < 0x80) {
      out.push_back(char(code));
    } else if (code < 0x800) {
      out.push_back(char(0xC0 | code >> 6));
      out.push_back(char(0x80 | (code & 63)));
    } else if (code < 0x10000) {
      out.push_back(char(0xE0 | code >> 12));
      out.push_back(char(0x80 | (code >> 6 & 63)));
      out.push_back(char(0x80 | (code & 63)));
    } else {
      out.push_back(char(0xF0 | code >> 18));
      out.push_back(char(0x80 | (code >> 12 & 63)));
      out.push_back(char(0x80 | (code >> 6 & 63)));
      out.push_back(char(0x80 | (code & 63)));
    }
  }

  const char* begin_;
  const char* p_;
  const char* end_;
  std::string skipped_;
};

}  // namespace mercer
