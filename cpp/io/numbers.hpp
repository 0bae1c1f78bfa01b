// Decimal numbers out of a byte buffer, correctly rounded.
//
//   [+-] digits [. digits] [e [+-] digits]      value = ± mantissa · 10^exponent
//
// A mantissa below 2^53 and a power of ten up to 10^22 are both exact in double precision, so one product or quotient
// rounds correctly; the rest goes to the library. There is no nan, no inf and no hexadecimal here: what is not a
// decimal number is not one.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

namespace mercer {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

namespace detail {

// Numbers that the short way cannot round; scale is the exponent of ten of the last digit.
inline double rounded_number(std::string_view text, int64_t scale, int64_t n_digits) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
#if defined(__cpp_lib_to_chars) && __cpp_lib_to_chars >= 201611L
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec == std::errc()) return value;
  // Beyond the range, at one end or the other: what counts is where the first digit that is not 0 stands.
  for (char c : text) {
    if (c == '0') --n_digits;
    if (c > '0') break;
  }
  const double limit = scale + n_digits > 0 ? std::numeric_limits<double>::infinity() : 0.0;
  return text.front() == '-' ? -limit : limit;
#else
  (void)scale, (void)n_digits;
  return std::strtod(std::string(text).c_str(), nullptr);
#endif
}

}  // namespace detail

// Reads the number that begins at p; returns where it ends, or nullptr if none begins there.
inline const char* read_number(const char* p, const char* end, double& value) {
  static constexpr double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const char* const start = p;
  bool negative = false;
  if (p < end && (*p == '-' || *p == '+')) negative = *p++ == '-';
  uint64_t mantissa = 0;
  const char* mark = p;
  for (; p < end && is_digit(*p); ++p) mantissa = mantissa * 10 + uint64_t(*p - '0');
  int64_t n_digits = p - mark, scale = 0;
  if (p < end && *p == '.') {
    mark = ++p;
    for (; p < end && is_digit(*p); ++p) mantissa = mantissa * 10 + uint64_t(*p - '0');
    scale = mark - p;
    n_digits += p - mark;
  }
  if (n_digits == 0) return nullptr;
  if (p < end && (*p == 'e' || *p == 'E')) {
    const char* q = p + 1;
    const bool down = q < end && *q == '-';
    if (q < end && (*q == '-' || *q == '+')) ++q;
    if (q < end && is_digit(*q)) {
      int64_t exponent = 0;
      for (; q < end && is_digit(*q); ++q)
        if (exponent < 100000000) exponent = exponent * 10 + (*q - '0');
      scale += down ? -exponent : exponent;
      p = q;
    }
  }
  if (n_digits <= 19 && mantissa <= (uint64_t(1) << 53) && scale >= -22 && scale <= 22) {
    const double magnitude = scale < 0 ? double(mantissa) / tens[-scale] : double(mantissa) * tens[scale];
    value = negative ? -magnitude : magnitude;
  } else {
    value = detail::rounded_number(std::string_view(start, size_t(p - start)), scale, n_digits);
  }
  return p;
}

// The shortest decimal that reads as this number again, in Python's notation: 0.0001, 1e-05, 2.5, 1e+20.
inline std::string shortest_number(double value) {
  char buffer[64];
#if defined(__cpp_lib_to_chars) && __cpp_lib_to_chars >= 201611L
  const double size = std::fabs(value);
  const auto form = size >= 1e-4 && size < 1e16 ? std::chars_format::fixed : std::chars_format::scientific;
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, value, form).ptr);
#else
  for (int precision = 1; precision <= 17; ++precision) {
    std::snprintf(buffer, sizeof buffer, "%.*g", precision, value);
    if (std::strtod(buffer, nullptr) == value) break;
  }
  return buffer;
#endif
}

// The whole of a text as a number; false if it is anything else.
inline bool whole_number(std::string_view text, double& value) {
  const char* const end = text.data() + text.size();
  return !text.empty() && read_number(text.data(), end, value) == end;
}

}  // namespace mercer
