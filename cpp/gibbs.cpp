// Markov chain Monte Carlo on factor graphs.
#include "bindings.hpp"

namespace mercer {

void bind_gibbs(nb::module_&) {}

}  // namespace mercer
