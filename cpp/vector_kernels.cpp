// Gram matrices of vectors: a product of matrices with a function of each entry.
#include "bindings.hpp"

namespace mercer {

void bind_vector_kernels(nb::module_&) {}

}  // namespace mercer
