// Hidden Markov models: expectation, one pass.
#include "bindings.hpp"

namespace mercer {

void bind_hidden_markov(nb::module_&) {}

}  // namespace mercer
