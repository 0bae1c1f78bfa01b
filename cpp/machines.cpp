// Support vector machines of two classes over features or a kernel matrix, started where the last one ended (spec 004 II-14).
#include "bindings.hpp"

namespace mercer {

void bind_machines(nb::module_&) {}

}  // namespace mercer
