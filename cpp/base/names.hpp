// Names from Python: bytes that were not UTF-8 in a file are surrogates there, and become the same bytes again.
#pragma once

#include <nanobind/nanobind.h>

#include <stdexcept>
#include <string>

namespace mercer {

inline std::string bytes_of_name(nanobind::handle name) {
  if (!PyUnicode_Check(name.ptr())) throw nanobind::type_error("names must be str");
  const nanobind::object bytes = nanobind::steal(PyUnicode_AsEncodedString(name.ptr(), "utf-8", "surrogateescape"));
  if (!bytes.is_valid()) {
    PyErr_Clear();
    throw std::invalid_argument("a name holds half a surrogate pair, which has no form in UTF-8");
  }
  return std::string(PyBytes_AS_STRING(bytes.ptr()), size_t(PyBytes_GET_SIZE(bytes.ptr())));
}

}  // namespace mercer
