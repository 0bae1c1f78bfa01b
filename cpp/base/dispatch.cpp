// The choice of an instruction set: the best of the machine, MERCER_SIMD, or the one asked for.
#include "base/dispatch.hpp"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/arrays.hpp"

namespace mercer {

namespace {

constexpr const char* kNames[] = {"baseline", "avx2", "avx512"};

bool supported(InstructionSet set) {
  if (set == InstructionSet::baseline) return true;
#if defined(MERCER_X86)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("popcnt") ||
      !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2"))
    return false;
  return set == InstructionSet::avx2 || (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                                         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"));
#else
  return false;
#endif
}

std::optional<InstructionSet> supported_set(const std::string& name) {
  for (int set = 0; set < 3; ++set)
    if (name == kNames[set] && supported(InstructionSet(set))) return InstructionSet(set);
  return std::nullopt;
}

InstructionSet best_set() {
  if (const char* wish = std::getenv("MERCER_SIMD")) {
    if (const auto found = supported_set(wish)) return *found;
    fail(std::string("MERCER_SIMD=") + wish +
         ": this machine cannot run that; leave it unset, or baseline, avx2 or avx512");
  }
  for (InstructionSet set : {InstructionSet::avx512, InstructionSet::avx2})
    if (supported(set)) return set;
  return InstructionSet::baseline;
}

std::mutex noting;
std::map<std::string, int>& noted() {  // sets as bits
  static std::map<std::string, int> choices;
  return choices;
}

void watch_choices(bool watch) {
  const std::lock_guard<std::mutex> lock(noting);
  noted().clear();
  choices_are_watched = watch;
}

nb::dict choices() {
  const std::lock_guard<std::mutex> lock(noting);
  nb::dict out;
  for (const auto& [concern, sets] : noted()) {
    nb::list names;
    for (int set = 0; set < 3; ++set)
      if (sets >> set & 1) names.append(kNames[set]);
    out[concern.c_str()] = names;
  }
  return out;
}

}  // namespace

bool machine_has(Feature feature) {
#if defined(MERCER_X86)
  if (feature == Feature::popcounts_of_vectors) return __builtin_cpu_supports("avx512vpopcntdq");
#endif
  (void)feature;
  return false;
}

void note_choice(const char* concern, InstructionSet set) {
  const std::lock_guard<std::mutex> lock(noting);
  noted()[concern] |= 1 << int(set);
}

void bind_dispatch(nb::module_& m) {
  set_in_use = best_set();  // a wrong MERCER_SIMD is an error of the import, not of the first use
  m.def("instruction_set", [] { return std::string(kNames[int(set_in_use.load())]); }, "The instruction set in use.");
  m.def(
      "instruction_sets",
      [] {
        std::vector<std::string> names;
        for (int set = 0; set < 3; ++set)
          if (supported(InstructionSet(set))) names.push_back(kNames[set]);
        return names;
      },
      "The instruction sets that this machine can run.");
  m.def(
      "use_instruction_set",
      [](const std::string& name) {
        const auto found = supported_set(name);
        if (!found) fail("this machine cannot run the instruction set '" + name + "'");
        set_in_use = *found;
      },
      "name"_a, "Chooses an instruction set (the best one is in use by default).");
  m.def("watch_choices", &watch_choices, "watch"_a, "Begins to note which loops were chosen for which sets, or ends.");
  m.def("choices", &choices,
        "The concerns whose loops were chosen while that was watched, and the sets of these loops.");
}

}  // namespace mercer
