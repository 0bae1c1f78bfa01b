// The choice of an instruction set: the best of the machine, MERCER_SIMD, or the one asked for.
#include "base/dispatch.hpp"

#include <cstdlib>
#include <string>

#include "base/arrays.hpp"

namespace mercer {

namespace {

bool supported(const std::string& name) {
  if (name == "baseline") return true;
#if defined(MERCER_X86)
  __builtin_cpu_init();
  const bool avx2_ok = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (name == "avx2") return avx2_ok;
  if (name == "avx512")
    return avx2_ok && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#endif
  return false;
}

const Kernels* kernels_named(const std::string& name) {
  if (!supported(name)) return nullptr;
#if defined(MERCER_X86)
  if (name == "avx512") return &avx512::kernels();
  if (name == "avx2") return &avx2::kernels();
#endif
  return &baseline::kernels();
}

const Kernels* best_kernels() {
  if (const char* wish = std::getenv("MERCER_SIMD")) {
    if (const Kernels* found = kernels_named(wish)) return found;
    fail(std::string("MERCER_SIMD=") + wish +
         ": this machine cannot run that; leave it unset, or baseline, avx2 or avx512");
  }
  for (const char* name : {"avx512", "avx2"})
    if (const Kernels* found = kernels_named(name)) return found;
  return kernels_named("baseline");
}

std::atomic<const Kernels*> current{nullptr};

}  // namespace

const Kernels& kernels() {
  const Kernels* table = current.load();
  if (!table) current.store(table = best_kernels());
  return *table;
}

void bind_dispatch(nb::module_& m) {
  kernels();  // a wrong MERCER_SIMD is an error of the import, not of the first use
  m.def("instruction_set", [] { return std::string(kernels().name); }, "The instruction set in use.");
  m.def(
      "instruction_sets",
      [] {
        std::vector<std::string> names;
        for (const char* name : {"baseline", "avx2", "avx512"})
          if (kernels_named(name)) names.push_back(name);
        return names;
      },
      "The instruction sets that this machine can run.");
  m.def(
      "use_instruction_set",
      [](const std::string& name) {
        const Kernels* found = kernels_named(name);
        if (!found) fail("this machine cannot run the instruction set '" + name + "'");
        current.store(found);
      },
      "name"_a, "Chooses an instruction set (the best one is in use by default).");
}

}  // namespace mercer
