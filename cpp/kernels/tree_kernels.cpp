// Kernels of labelled ordered trees: sums over pairs of nodes that match.
//
//   subset trees   C(a, b) = λ Π_j (1 + C(a_j, b_j))                                      a, b with one production
//   partial trees  Δ(a, b) = μ (λ² + Σ_{I, J} λ^{span I + span J} Π_k Δ(a_{I_k}, b_{J_k}))  a, b with one label
//   subtrees       count of every complete subtree, under the hash of its shape and labels
//
// The nodes of a tree are numbered so that children come after their parents, and sorted into groups of one production
// (or label). A pair of trees is a look at the groups of one in a table of those of the other; the values of matched
// pairs lie side by side, so that memory and time go with the number of matched pairs. Nothing is recursive: trees may
// be as deep as memory allows.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "base/arrays.hpp"
#include "hashing/feature_hash.hpp"
#include "base/parallel.hpp"
#include "base/signals.hpp"
#include "hashing/utf8.hpp"

namespace mercer {
namespace {

constexpr uint64_t LABEL = 1, WORD = 2;           // seeds: a word is never equal to a label
constexpr int64_t MOST_PAIRS = int64_t(1) << 30;  // of matched nodes of two trees: 8 GiB of values
constexpr int64_t MOST_NODES = int64_t(INT32_MAX) - 1;

// One tree as it is read: a node before its children, from left to right.
struct RawTree {
  std::vector<uint64_t> names;
  std::vector<int32_t> parents;  // -1: the root
  std::vector<uint8_t> words;

  void clear() {
    names.clear();
    parents.clear();
    words.clear();
  }
  int32_t add(std::string_view name, bool word, int32_t parent) {
    require(int64_t(names.size()) < MOST_NODES, "a tree has too many nodes");
    names.push_back(feature_hash(name, word ? WORD : LABEL));
    parents.push_back(parent);
    words.push_back(word);
    return int32_t(names.size()) - 1;
  }
};

// ---------------------------------------------------------------------------------------------- reading

// Bracket notation, as mercer.data.Tree reads it.
class BracketReader {
 public:
  BracketReader(std::string_view text, int64_t number, bool leaves, RawTree& out)
      : text_(text), number_(number), leaves_(leaves), out_(out), table_(CharacterTable::get()) {}

  void read() {
    for (size_t at = skip_space(0); at < text_.size(); at = skip_space(at)) {
      if (text_[at] == '(') {
        open(at++);
      } else if (text_[at] == ')') {
        close(at++);
      } else {
        const size_t end = token_end(at);
        token(text_.substr(at, end - at), at);
        at = end;
      }
    }
    if (!stack_.empty())
      fail_at(text_.size(),
              "the text ends inside a tree: closing brackets are missing: " + std::to_string(stack_.size()));
    if (!done_) fail_at(text_.size(), "there is no tree");
  }

 private:
  struct Open {
    int32_t node;  // -1: no label (yet)
    int32_t children;
    bool words;  // whether one of the children is a word
    std::string_view label;
  };

  [[noreturn]] void fail_at(size_t at, const std::string& what) const {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at; i += character_length(text_[i])) {
      ++column;
      if (text_[i] == '\n') ++line, column = 1;
    }
    fail("tree " + std::to_string(number_) + ": line " + std::to_string(line) + ", column " + std::to_string(column) +
         ": " + what);
  }

  size_t skip_space(size_t at) const {
    while (at < text_.size()) {
      const Character c = read_character(text_.data() + at, text_.size() - at);
      if (c.length == 0 || !table_.is_space(c.code)) return at;
      at += size_t(c.length);
    }
    return at;
  }
  size_t token_end(size_t at) const {
    while (at < text_.size() && text_[at] != '(' && text_[at] != ')') {
      const Character c = read_character(text_.data() + at, text_.size() - at);
      if (c.length > 0 && table_.is_space(c.code)) break;
      at += c.length ? size_t(c.length) : 1;
    }
    return at;
  }

  void open(size_t at) {
    if (stack_.empty() && done_) fail_at(at, "a second tree begins; every object is one tree");
    if (!stack_.empty()) ++stack_.back().children;
    stack_.push_back({-1, 0, false, {}});
    expect_label_ = true;
  }

  void close(size_t at) {
    if (stack_.empty()) fail_at(at, "a closing bracket without an opening one");
    const Open top = stack_.back();
    stack_.pop_back();
    expect_label_ = false;
    // The Penn Treebank's outer brackets have no label.
    if (top.node < 0 && (!stack_.empty() || top.children != 1 || top.words)) fail_at(at, "a node without a label");
    if (top.children == 0)
      fail_at(at, "the node '" + std::string(top.label) + "' has no children: a tree ends in words");
    done_ = done_ || stack_.empty();
  }

  void token(std::string_view text, size_t at) {
    if (stack_.empty()) fail_at(at, "the word '" + std::string(text) + "' stands outside every tree");
    Open& top = stack_.back();
    if (expect_label_) {
      top.node = out_.add(text, false, stack_.size() > 1 ? stack_[stack_.size() - 2].node : -1);
      top.label = text;
      expect_label_ = false;
      return;
    }
    ++top.children;
    top.words = true;
    if (leaves_ && top.node >= 0) out_.add(text == "-LRB-" ? "(" : text == "-RRB-" ? ")" : text, true, top.node);
  }

  std::string_view text_;
  int64_t number_;
  bool leaves_;
  RawTree& out_;
  const CharacterTable& table_;
  std::vector<Open> stack_;
  bool expect_label_ = false, done_ = false;
};

std::string_view utf8(nb::handle object, int64_t number) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_Check(object.ptr()) ? PyUnicode_AsUTF8AndSize(object.ptr(), &size) : nullptr;
  if (!data) {
    PyErr_Clear();
    fail("tree " + std::to_string(number) + ": text must be strings without lone surrogates");
  }
  return {data, size_t(size)};
}

// A tree that was flattened before: names, numbers of the parents, and which nodes are words.
void read_flat(nb::handle object, int64_t number, bool leaves, RawTree& out) {
  nb::tuple parts;
  nb::list names, parents, words;
  require(nb::try_cast(object, parts) && parts.size() == 3 && nb::try_cast(parts[0], names) &&
              nb::try_cast(parts[1], parents) && nb::try_cast(parts[2], words) && names.size() == parents.size() &&
              names.size() == words.size() && names.size() > 0,
          "a flat tree is (names, parents, words): three lists of one length");
  std::vector<int32_t> place(names.size(), -1);
  for (size_t v = 0; v < names.size(); ++v) {
    int64_t parent;
    bool word;
    if (!nb::try_cast(parents[v], parent) || !nb::try_cast(words[v], word))
      throw nb::type_error("parents of a flat tree must be integers, and words booleans");
    require(v == 0 ? parent == -1 && !word : parent >= 0 && parent < int64_t(v) && place[size_t(parent)] >= 0,
            "a node of a flat tree must come after its parent, which is no word");
    if (word && !leaves) continue;
    const int32_t made = out.add(utf8(names[v], number), word, v == 0 ? -1 : place[size_t(parent)]);
    if (!word) place[v] = made;
  }
}

template <class Each> void for_each_tree(const nb::list& objects, bool leaves, Each each) {
  RawTree tree;
  for (size_t i = 0; i < objects.size(); ++i) {
    tree.clear();
    nb::object object = objects[i];
    if (PyUnicode_Check(object.ptr())) {
      BracketReader(utf8(object, int64_t(i)), int64_t(i), leaves, tree).read();
    } else {
      read_flat(object, int64_t(i), leaves, tree);
    }
    each(tree);
    if ((i & 255) == 255 && PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

// ---------------------------------------------------------------------------------------------- forests

// Nodes of many trees; all numbers of nodes count from the beginning of their tree.
struct Nodes {
  std::vector<int64_t> offsets{0};
  std::vector<uint64_t> keys;  // production or label
  std::vector<int64_t> child_offsets{0};
  std::vector<int32_t> children;
  std::vector<int32_t> order;             // nodes sorted by key
  std::vector<int32_t> ranks;             // place in the own group
  std::vector<int64_t> group_offsets{0};  // of every tree
  std::vector<uint64_t> group_keys;
  std::vector<int32_t> group_starts;  // in the order of the tree

  // With productions, words are parts of their parent's key and no nodes; with labels, they are nodes as all others.
  void add(const RawTree& tree, bool productions) {
    const size_t n = tree.names.size();
    std::vector<uint64_t> key(tree.names);
    if (productions)
      for (size_t v = 1; v < n; ++v)
        key[size_t(tree.parents[v])] = combine(key[size_t(tree.parents[v])], tree.names[v]);
    std::vector<int32_t> place(n, -1), parent;
    for (size_t v = 0; v < n; ++v) {
      if (productions && tree.words[v]) continue;
      place[v] = int32_t(parent.size());
      parent.push_back(v == 0 ? -1 : place[size_t(tree.parents[v])]);
      keys.push_back(key[v]);
    }
    add_children(parent);
    add_groups(parent.size());
    offsets.push_back(int64_t(keys.size()));
  }

 private:
  void add_children(const std::vector<int32_t>& parent) {
    const size_t first = child_offsets.size() - 1;
    std::vector<int64_t> next(parent.size(), 0);
    for (size_t v = 1; v < parent.size(); ++v) ++next[size_t(parent[v])];
    for (size_t v = 0; v < parent.size(); ++v) {
      child_offsets.push_back(child_offsets.back() + next[v]);
      next[v] = child_offsets[first + v];
    }
    children.resize(size_t(child_offsets.back()));
    for (size_t v = 1; v < parent.size(); ++v) children[size_t(next[size_t(parent[v])]++)] = int32_t(v);
  }

  void add_groups(size_t n) {
    const size_t first = order.size();
    const uint64_t* key = keys.data() + first;
    for (size_t v = 0; v < n; ++v) order.push_back(int32_t(v));
    std::sort(order.begin() + int64_t(first), order.end(),
              [key](int32_t a, int32_t b) { return key[a] != key[b] ? key[a] < key[b] : a < b; });
    ranks.resize(first + n);
    for (size_t k = 0; k < n; ++k) {
      const int32_t v = order[first + k];
      if (k == 0 || key[v] != key[order[first + k - 1]]) {
        group_keys.push_back(key[v]);
        group_starts.push_back(int32_t(k));
      }
      ranks[first + size_t(v)] = int32_t(k) - group_starts.back();
    }
    group_offsets.push_back(int64_t(group_keys.size()));
  }
};

struct TreeView {
  int32_t n;
  const uint64_t* keys;
  const int64_t* child_offsets;
  const int32_t* all_children;
  const int32_t* order;
  const int32_t* ranks;
  int32_t n_groups;
  const uint64_t* group_keys;
  const int32_t* group_starts;

  int32_t group_end(int32_t g) const { return g + 1 < n_groups ? group_starts[g + 1] : n; }
  int32_t arity(int32_t v) const { return int32_t(child_offsets[v + 1] - child_offsets[v]); }
  const int32_t* children(int32_t v) const { return all_children + child_offsets[v]; }
};

// A range of trees; cuts share the nodes.
struct Forest {
  std::shared_ptr<const Nodes> nodes;
  int64_t start = 0, stop = 0;

  int64_t size() const { return stop - start; }
  TreeView operator[](int64_t i) const {
    const Nodes& a = *nodes;
    const auto t = size_t(start + i);
    const auto v = size_t(a.offsets[t]), g = size_t(a.group_offsets[t]);
    return {int32_t(a.offsets[t + 1] - a.offsets[t]),
            a.keys.data() + v,
            a.child_offsets.data() + v,
            a.children.data(),
            a.order.data() + v,
            a.ranks.data() + v,
            int32_t(a.group_offsets[t + 1] - a.group_offsets[t]),
            a.group_keys.data() + g,
            a.group_starts.data() + g};
  }
};

Forest make_forest(const nb::list& objects, bool leaves, bool productions) {
  auto nodes = std::make_shared<Nodes>();
  for_each_tree(objects, leaves, [&](const RawTree& tree) { nodes->add(tree, productions); });
  const auto n = int64_t(nodes->offsets.size()) - 1;
  return {std::move(nodes), 0, n};
}

// ---------------------------------------------------------------------------------------------- pairs of trees

// The values of matched pairs of one tree with others, one at a time: that of (a, b) is values[base of a + rank of b].
class Matches {
 public:
  // The tree whose row of the matrix is computed: a table of its groups.
  void take(const TreeView& s) {
    s_ = s;
    size_t size = 4;
    while (size < 16 * size_t(s.n_groups)) size *= 2;  // mostly free slots: a miss is known at the first look
    mask_ = size - 1;
    table_.assign(size, -1);
    for (int32_t g = 0; g < s.n_groups; ++g) {
      size_t slot = s.group_keys[g] & mask_;
      while (table_[slot] >= 0) slot = (slot + 1) & mask_;
      table_[slot] = g;
    }
  }
  const TreeView& tree() const { return s_; }

  double at(const TreeView& t, int32_t a, int32_t b) const {
    return s_.keys[a] == t.keys[b] ? values_[size_t(spans_[size_t(a)].base + t.ranks[b])] : 0.0;
  }

  // Σ of value(a, b) over all matched pairs; those of children are known when a pair is asked for.
  template <class Value> double sum(const TreeView& t, Value value) {
    match(t);
    double total = 0.0;
    for (int32_t a = s_.n - 1; a >= 0; --a) {
      const Span& span = spans_[size_t(a)];
      const int32_t* b = t.order + span.first;
      double* out = values_.data() + span.base;
      for (int32_t k = 0; k < span.count; ++k) total += out[k] = value(a, b[k]);
      poll_signals(8 * int64_t(span.count));
    }
    return total;
  }

 private:
  struct Span {
    int64_t base;
    int32_t first, count;  // the nodes of the other tree, in its order
  };

  int32_t group_of(uint64_t key) const {
    for (size_t slot = key & mask_; table_[slot] >= 0; slot = (slot + 1) & mask_)
      if (s_.group_keys[table_[slot]] == key) return table_[slot];
    return -1;
  }

  // Finds the groups that both trees have.
  void match(const TreeView& t) {
    spans_.assign(size_t(s_.n), {0, 0, 0});
    int64_t used = 0;
    for (int32_t h = 0; h < t.n_groups; ++h) {
      const int32_t g = group_of(t.group_keys[h]);
      if (g < 0) continue;
      const int32_t first = t.group_starts[h], count = t.group_end(h) - first;
      for (int32_t k = s_.group_starts[g]; k < s_.group_end(g); ++k) {
        spans_[size_t(s_.order[k])] = {used, first, count};
        used += count;
      }
    }
    if (used > MOST_PAIRS)
      fail("two trees have " + std::to_string(used) + " pairs of matched nodes: more than memory is used for");
    if (values_.size() < size_t(used)) values_.resize(size_t(used));
  }

  TreeView s_{};
  size_t mask_ = 0;
  std::vector<int32_t> table_;
  std::vector<Span> spans_;
  std::vector<double> values_;
};

class SubsetTrees {
 public:
  explicit SubsetTrees(double decay) : decay_(decay) {}
  void take(const TreeView& tree) { matches_.take(tree); }
  double with(const TreeView& t) {
    const TreeView& s = matches_.tree();
    return matches_.sum(t, [&](int32_t a, int32_t b) {
      double value = decay_;
      const int32_t *of_a = s.children(a), *of_b = t.children(b);
      const int32_t arity = std::min(s.arity(a), t.arity(b));
      for (int32_t j = arity - 1; j >= 0; --j) value *= 1.0 + matches_.at(t, of_a[j], of_b[j]);
      poll_signals(4 * int64_t(arity));
      return value;
    });
  }

 private:
  double decay_;
  Matches matches_;
};

class PartialTrees {
 public:
  PartialTrees(double decay, double depth) : decay_(decay), depth_(depth) {}
  void take(const TreeView& tree) { matches_.take(tree); }
  double with(const TreeView& t) {
    return matches_.sum(t, [&](int32_t a, int32_t b) { return depth_ * (decay_ * decay_ + children(t, a, b)); });
  }

 private:
  // Σ over equally long subsequences of children. S(i, j): those that end in the children i and j; above[j]: Σ
  // λ^{distance} S over all ends before i and up to j.
  //   S(i, j) = λ² Δ(i, j) (1 + Σ_{i' < i, j' < j} λ^{i - 1 - i' + j - 1 - j'} S(i', j'))
  double children(const TreeView& t, int32_t a, int32_t b) {
    const TreeView& s = matches_.tree();
    const int32_t n = s.arity(a), m = t.arity(b);
    if (n == 0 || m == 0) return 0.0;
    const int32_t *of_a = s.children(a), *of_b = t.children(b);
    above_.assign(size_t(m) + 1, 0.0);
    double total = 0.0;
    for (int32_t i = 0; i < n; ++i) {
      poll_signals(8 * int64_t(m));
      double along = 0.0,
             diagonal = 0.0;  // along: Σ_{j' <= j} λ^{j - j'} S(i, j'); diagonal: above[j - 1] of the row before
      for (int32_t j = 0; j < m; ++j) {
        const double pair = matches_.at(t, of_a[i], of_b[j]);
        const double ending = decay_ * decay_ * pair * (1.0 + diagonal);
        total += ending;
        along = ending + decay_ * along;
        diagonal = above_[size_t(j)];
        above_[size_t(j)] = along + decay_ * diagonal;
      }
    }
    return total;
  }

  double decay_, depth_;
  Matches matches_;
  std::vector<double> above_;
};

template <class Kernel>
void tree_gram(const Forest& left, const Forest* right, Out2<double> out, int threads, const Kernel& kernel) {
  const Forest& other = right ? *right : left;
  const int64_t n = left.size(), m = other.size();
  require(int64_t(out.shape(0)) == n && int64_t(out.shape(1)) == m, "out has the wrong shape");
  threads = thread_count(threads);
  double* K = out.data();
  nb::gil_scoped_release unlocked;
  in_parallel(n, threads, [&](int64_t i) {
    Kernel own(kernel);  // with its scratch
    own.take(left[i]);
    for (int64_t j = 0; j < (right ? m : i + 1); ++j) K[i * m + j] = own.with(other[j]);
  });
  if (!right)
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < i; ++j) K[j * n + i] = K[i * n + j];
}

template <class Kernel> nb::object tree_diagonal(const Forest& forest, int threads, const Kernel& kernel) {
  std::vector<double> out(size_t(forest.size()));
  threads = thread_count(threads);
  {
    nb::gil_scoped_release unlocked;
    constexpr int64_t CHUNK = 64;
    in_parallel((forest.size() + CHUNK - 1) / CHUNK, threads, [&](int64_t part) {
      Kernel own(kernel);
      for (int64_t i = part * CHUNK; i < std::min(forest.size(), (part + 1) * CHUNK); ++i) {
        own.take(forest[i]);
        out[size_t(i)] = own.with(forest[i]);
      }
    });
  }
  return to_numpy(std::move(out));
}

double factor(double value, const char* what) {
  require(std::isfinite(value) && value > 0, what);
  return value;
}

SubsetTrees subset_trees(double decay) { return SubsetTrees(factor(decay, "decay must be positive")); }
PartialTrees partial_trees(double decay, double depth) {
  return {factor(decay, "decay must be positive"), factor(depth, "decay_depth must be positive")};
}

// ---------------------------------------------------------------------------------------------- complete subtrees

using Weighted = std::pair<uint64_t, double>;

// By key: in linear time where there are many.
void sort_by_key(std::vector<Weighted>& entries, std::vector<Weighted>& scratch) {
  if (entries.size() < 4096) {
    std::sort(entries.begin(), entries.end());
    return;
  }
  constexpr int BITS = 11;
  constexpr uint64_t MASK = (uint64_t(1) << BITS) - 1;
  scratch.resize(entries.size());
  for (int shift = 0; shift < 64; shift += BITS) {
    std::vector<size_t> starts(MASK + 2, 0);
    for (const Weighted& e : entries) ++starts[((e.first >> shift) & MASK) + 1];
    for (size_t b = 1; b < starts.size(); ++b) starts[b] += starts[b - 1];
    for (const Weighted& e : entries) scratch[starts[(e.first >> shift) & MASK]++] = e;
    entries.swap(scratch);
  }
}

// Rows of (hash of a subtree, count · λ^{size / 2}), keys ascending; the size is the number of labels in it.
nb::tuple subtree_rows(const nb::list& objects, bool leaves, double decay) {
  factor(decay, "decay must be positive");
  std::vector<int64_t> offsets{0};
  std::vector<uint64_t> keys;
  std::vector<double> values;
  std::vector<uint64_t> beneath;  // hash of the children, last to first
  std::vector<int64_t> sizes;
  std::vector<Weighted> found, scratch;
  for_each_tree(objects, leaves, [&](const RawTree& tree) {
    const size_t n = tree.names.size();
    beneath.assign(n, 0);
    sizes.assign(n, 0);
    found.clear();
    for (size_t v = n; v-- > 0;) {
      const uint64_t hash = combine(tree.names[v], beneath[v]);
      if (!tree.words[v]) {
        ++sizes[v];
        found.emplace_back(hash, std::pow(decay, 0.5 * double(sizes[v])));
      }
      if (v == 0) break;
      const auto parent = size_t(tree.parents[v]);
      beneath[parent] = combine(beneath[parent], hash);
      sizes[parent] += sizes[v];
    }
    sort_by_key(found, scratch);
    for (size_t k = 0; k < found.size();) {
      size_t end = k + 1;
      while (end < found.size() && found[end].first == found[k].first) ++end;
      keys.push_back(found[k].first);
      values.push_back(double(end - k) * found[k].second);
      k = end;
    }
    offsets.push_back(int64_t(keys.size()));
  });
  return nb::make_tuple(to_numpy(std::move(offsets)), to_numpy(std::move(keys)), to_numpy(std::move(values)));
}

}  // namespace

void bind_tree_kernels(nb::module_& m) {
  nb::class_<Forest>(m, "Forest", "Trees, their nodes sorted into groups of one production or label.")
      .def(
          "__init__",
          [](Forest* self, const nb::list& objects, bool leaves, bool productions) {
            new (self) Forest(make_forest(objects, leaves, productions));
          },
          "objects"_a, "leaves"_a, "productions"_a)
      .def("__len__", &Forest::size)
      .def_prop_ro("n_nodes",
                   [](const Forest& self) {
                     return self.nodes->offsets[size_t(self.stop)] - self.nodes->offsets[size_t(self.start)];
                   })
      .def(
          "cut",
          [](const Forest& self, int64_t start, int64_t stop) {
            require(start >= 0 && start <= stop && stop <= self.size(),
                    "a cut of a forest needs 0 <= start <= stop <= its length");
            return Forest{self.nodes, self.start + start, self.start + stop};
          },
          "start"_a, "stop"_a);
  m.def(
      "subset_tree_gram",
      [](const Forest& left, const Forest* right, double decay, Out2<double> out, int threads) {
        tree_gram(left, right, out, threads, subset_trees(decay));
      },
      "left"_a, "right"_a.none(), "decay"_a, "out"_a, "threads"_a = 1);
  m.def(
      "subset_tree_diagonal",
      [](const Forest& forest, double decay, int threads) {
        return tree_diagonal(forest, threads, subset_trees(decay));
      },
      "forest"_a, "decay"_a, "threads"_a = 1);
  m.def(
      "partial_tree_gram",
      [](const Forest& left, const Forest* right, double decay, double depth, Out2<double> out, int threads) {
        tree_gram(left, right, out, threads, partial_trees(decay, depth));
      },
      "left"_a, "right"_a.none(), "decay"_a, "decay_depth"_a, "out"_a, "threads"_a = 1);
  m.def(
      "partial_tree_diagonal",
      [](const Forest& forest, double decay, double depth, int threads) {
        return tree_diagonal(forest, threads, partial_trees(decay, depth));
      },
      "forest"_a, "decay"_a, "decay_depth"_a, "threads"_a = 1);
  m.def("subtree_rows", &subtree_rows, "objects"_a, "leaves"_a, "decay"_a);
}

}  // namespace mercer
