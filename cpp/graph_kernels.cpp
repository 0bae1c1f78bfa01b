// Kernels of graphs: shortest paths, refined labels, walks on product graphs.
#include "bindings.hpp"

namespace mercer {

void bind_graph_kernels(nb::module_&) {}

}  // namespace mercer
