// Chart parsing with weighted grammars.
#include "bindings.hpp"

namespace mercer {

void bind_parsing(nb::module_&) {}

}  // namespace mercer
