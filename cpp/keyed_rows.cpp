// Inner products of sparse rows under 64-bit keys.
#include "bindings.hpp"

namespace mercer {

void bind_keyed_rows(nb::module_&) {}

}  // namespace mercer
