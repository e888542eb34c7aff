#include "runtime/tensor/initial_weights.h"

#include <algorithm>
#include <atomic>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/fnv1a.h"
#include "base/rng.h"

namespace paceline::tensor {

namespace {

// What a thread takes at once; a model that is smaller is one thread's.
constexpr std::size_t kPieceElements = std::size_t{1} << 18;
constexpr std::uint64_t kDrawsOfNormal = 2, kDrawsOfUniform = 1;  // of Rng, for one value

// Elements [begin, begin + weights.size()) of one parameter.
struct Piece {
  const Node* node;
  std::size_t begin;
  std::span<float> weights;
};

void fill(const Piece& piece, std::uint64_t seed) {
  const Init& init = piece.node->init;
  Rng rng(seed, fnv1a(piece.node->name));
  switch (init.kind) {
    case Init::Kind::kConstant:
      std::fill(piece.weights.begin(), piece.weights.end(), init.value);
      return;
    case Init::Kind::kNormal:
      rng.seek(piece.begin * kDrawsOfNormal);
      for (float& w : piece.weights) w = init.value * rng.normal();
      return;
    case Init::Kind::kUniform:
      rng.seek(piece.begin * kDrawsOfUniform);
      for (float& w : piece.weights) w = init.value * (2 * rng.uniform() - 1);
      return;
  }
}

}  // namespace

void fill_initial_weights(const GraphBuilder& graph, const ParameterLayout& layout, std::uint64_t seed,
                          int threads, std::span<float> weights) {
  PL_CHECK(weights.size() == layout.elements, "the weights must have parameters().elements elements");
  clear_padding(layout, weights);
  std::vector<Piece> pieces;
  for (const Node& node : graph.nodes()) {
    if (node.kind != OpKind::kParameter) continue;
    const auto p = std::find_if(layout.parameters.begin(), layout.parameters.end(),
                                [&](const Parameter& q) { return q.name == node.name; });
    for (std::size_t at = 0; at < p->count; at += kPieceElements) {
      const std::size_t count = std::min(kPieceElements, p->count - at);
      pieces.push_back({&node, at, weights.subspan(p->offset + at, count)});
    }
  }
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < pieces.size(); i = next++) fill(pieces[i], seed);
  };
  const std::size_t most =
      std::min<std::size_t>(static_cast<std::size_t>(std::max(threads, 1)), layout.elements / kPieceElements);
  std::vector<std::jthread> helpers;
  try {
    for (std::size_t i = 1; i < most; ++i) helpers.emplace_back(work);
  } catch (const std::system_error&) {  // no more threads to be had: those that there are do it
  }
  work();
}

void clear_padding(const ParameterLayout& layout, std::span<float> vector) {
  for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
    const Parameter& p = layout.parameters[i];
    const std::size_t end =
        i + 1 < layout.parameters.size() ? layout.parameters[i + 1].offset : layout.elements;
    for (std::size_t e = p.offset + p.count; e < end; ++e) vector[e] = 0;
  }
}

}  // namespace paceline::tensor
