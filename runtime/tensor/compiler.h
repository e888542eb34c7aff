#pragma once

// From a graph to a Program: reverse mode, memory plan, and the device's operators, all before the first
// step.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/tensor/graph.h"
#include "runtime/tensor/program.h"

namespace paceline::tensor {

class Device;  // device.h
class Queue;

enum class Precision : std::uint8_t {
  kF32,
  kBF16
};  // kBF16: operands of matrix products and convolutions are rounded to bfloat16
enum class Mode : std::uint8_t { kTraining, kInference };

// Of a device's own memory, for what is taken there after a program: `what` it is, for people.
struct LeftRoom {
  std::size_t bytes = 0;
  std::string what = {};  // "weights and gradient"
};

// The memory of keys and values of earlier positions (graph.h, cached_self_attention), of one sample. The
// first program that needs it takes it from its device, filled with zeros. A pass leaves keys and values
// there, and later passes read them, of this program or of another one with the same cache: programs that
// share it have the same device, queue and precision, and as many attentions of the same shapes, and work one
// after the other. It is made empty, by std::make_shared (device.h), and the device outlives it.
struct KeyValueCache;

struct CompileOptions {
  std::int64_t max_rows = 1;
  Precision precision = Precision::kF32;
  Mode mode = Mode::kTraining;  // an inference program has no backward()
  // Less memory for activations, more time for the backward pass, the same bits: see recompute.h.
  bool recompute_activations = false;
  int threads = 1;  // at most so many fill the initial weights
  // Of the device: its programs have the same parameters and work one after the other. Null: its own.
  std::shared_ptr<Queue> queue = nullptr;
  // The graph's attention keeps keys and values here, where it has a cache. Null: the program has its own.
  std::shared_ptr<KeyValueCache> cache = nullptr;
  // By all of the program, until it has taken copies of the host's vectors; more rows than fit beside it are
  // refused.
  LeftRoom leave = {};
};

// `device` outlives the program. Errors: the graph's own; INVALID_ARGUMENT without a loss, with max_rows <
// 1, or more than 1 with a key/value cache, or of scores() in training; UNIMPLEMENTED where the device lacks
// an operator; RESOURCE_EXHAUSTED where memory is short.
absl::StatusOr<std::unique_ptr<Program>> compile(const GraphBuilder& graph, Device& device,
                                                 const CompileOptions& options);

// Bytes of the host's memory that such a program takes when it is compiled, beside the vectors that are bound
// to it, without taking them. REQUIRES: the device's memory is the host's. Errors: compile()'s.
absl::StatusOr<std::size_t> program_bytes(const GraphBuilder& graph, Device& device,
                                          const CompileOptions& options);

}  // namespace paceline::tensor
