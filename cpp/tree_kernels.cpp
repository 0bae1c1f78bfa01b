// Kernels of trees: common fragments of pairs of nodes.
#include "bindings.hpp"

namespace mercer {

void bind_tree_kernels(nb::module_&) {}

}  // namespace mercer
