// The Python module: makes its submodules. What they offer is bound at the foot of the files whose loops it protects.

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

#include <vector>

#include "base/arrays.hpp"
#include "base/parallel.hpp"

namespace mercer {

using Binder = void(nb::module_&);
// base
Binder bind_dispatch;
Binder bind_vectors;
// hashing
Binder bind_hashing, bind_records, bind_text, bind_vocabulary;
// io
Binder bind_examples, bind_readers, bind_networks;
// structures
Binder bind_linear, bind_chain, bind_segments, bind_parsing, bind_alignment;
// inference
Binder bind_factors, bind_messages, bind_mean_field, bind_cliques, bind_gibbs, bind_cuts, bind_dual;
Binder bind_fields;
// graphs
Binder bind_graphlets;
// kernels
Binder bind_vector_kernels, bind_string_kernels, bind_tree_kernels, bind_graph_kernels, bind_keyed_rows;
Binder bind_transducers, bind_dependence;
// maps
Binder bind_circulant, bind_hamming, bind_fastmaps, bind_signed_hash;
// solvers
Binder bind_chain_online, bind_blocks, bind_multiclass, bind_machines, bind_block_machines, bind_relative,
    bind_assignment;
Binder bind_labellings, bind_ranking, bind_learner, bind_sparse_codes, bind_joint_dual, bind_joint_online,
    bind_label_machines, bind_label_tree;
// registration
Binder bind_neighbours, bind_icp, bind_matching;

namespace {

struct Submodule {
  const char *name, *about;
  std::vector<Binder*> binders;
};

// A name of its own for each concern; classes come before the functions that take them.
const std::vector<Submodule>& submodules() {
  static const std::vector<Submodule> all = {
      {"vectors", "Inner products and sums of long vectors.", {bind_vectors}},
      {"hashing", "Hashes of features, records and streams.", {bind_hashing, bind_records}},
      {"text", "Documents and strings to hashed rows.", {bind_text}},
      {"vocabulary", "Feature names to columns.", {bind_vocabulary}},
      {"examples", "Blocks of hashed examples and readers of files.", {bind_examples, bind_readers}},
      {"linear", "Feature rows, patterns of weights, part scores and their adjoint.", {bind_linear}},
      {"chain", "Chains of labels: every verb, and online learning.", {bind_chain, bind_chain_online}},
      {"segments", "Segmentations.", {bind_segments}},
      {"parsing", "Charts over weighted grammars.", {bind_parsing}},
      {"alignment", "Pairwise alignment.", {bind_alignment}},
      {"inference",
       "Factor graphs, and files of them.",
       {bind_factors, bind_messages, bind_mean_field, bind_cliques, bind_gibbs, bind_cuts, bind_dual, bind_networks}},
      {"fields", "Sweeps of random fields.", {bind_fields}},
      {"graphs", "Graphlets and canonical forms of graphs.", {bind_graphlets}},
      {"kernels",
       "Kernels of vectors, strings, trees, graphs; products of sparse rows; permutation tests.",
       {bind_keyed_rows, bind_vector_kernels, bind_string_kernels, bind_transducers, bind_tree_kernels,
        bind_graph_kernels, bind_dependence}},
      {"maps",
       "Random features, circulant and hashed projections, codes.",
       {bind_circulant, bind_hamming, bind_fastmaps, bind_signed_hash}},
      {"planes", "Planes of margin losses and ascent on their dual.", {bind_blocks}},
      {"multiclass", "Dual ascent for single labels.", {bind_multiclass}},
      {"machines", "Support vector machines.", {bind_machines, bind_block_machines, bind_relative}},
      {"joint",
       "Label sets: joint machines, linear machines, trees of labels.",
       {bind_joint_dual, bind_joint_online, bind_label_machines, bind_label_tree}},
      {"bags", "Labels of instances from shares of bags.", {bind_assignment, bind_labellings}},
      {"ranking", "Losses over pairs and rankings.", {bind_ranking}},
      {"sparse_codes", "Sparse codes of signals over a dictionary.", {bind_sparse_codes}},
      {"learner", "Online learning over hashed features.", {bind_learner}},
      {"registration", "Point clouds: neighbours, alignment, matching.", {bind_neighbours, bind_icp, bind_matching}},
  };
  return all;
}

}  // namespace

}  // namespace mercer

NB_MODULE(_core, m) {
  using namespace mercer;
  // Objects that live to the end of the interpreter (in caches, in tracebacks) are no leak.
  nb::set_leak_warnings(false);
#if defined(__unix__) || defined(__APPLE__)
  pthread_atfork(nullptr, nullptr, [] { threads_are_lost = threads_were_used.load(); });
#endif
  m.doc() = "Compiled loops of mercer: plain arrays in, plain arrays out.";
  bind_dispatch(m);
  for (const Submodule& part : submodules()) {
    nb::module_ own = m.def_submodule(part.name, part.about);
    for (Binder* bind : part.binders) bind(own);
  }
}
