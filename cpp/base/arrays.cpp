#include "base/arrays.hpp"

namespace mercer {

void fail(const char* what) { throw std::invalid_argument(what); }
void fail(const std::string& what) { throw std::invalid_argument(what); }

}  // namespace mercer
