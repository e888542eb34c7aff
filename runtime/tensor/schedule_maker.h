#pragma once

// How a schedule is made; schedule.cc makes one and throws this away. Nodes are visited twice: forward from
// the inputs to the loss (schedule_forward.cc), backward from the loss to the inputs (schedule_backward.cc).

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/tensor/schedule.h"

namespace paceline::tensor {

inline std::size_t index(Value value) {
  return static_cast<std::size_t>(value.id);
}

// By node: whether the loss depends on it.
std::vector<bool> reached_by_loss(const GraphBuilder& graph);

class ScheduleMaker {
 public:
  ScheduleMaker(const GraphBuilder& graph, const ParameterLayout& layout, std::int64_t rows, bool training)
      : nodes_(graph.nodes()), layout_(layout), rows_(rows), reached_(reached_by_loss(graph)) {
    schedule_.training = training;
    schedule_.elements = layout.elements;
  }

  Schedule run() {
    study();
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (reached_[i]) forward(i);
    }
    schedule_.forward_count = schedule_.operations.size();
    if (schedule_.training) {
      for (std::size_t i = nodes_.size(); i-- > 0;) {
        if (reached_[i] && needs_gradient_[i]) backward(i);
      }
      find_ready_ranges();
    }
    return std::move(schedule_);
  }

 private:
  // ---- what is known of each node before anything is emitted ----
  void study();
  bool only_linear_consumers(std::size_t node) const;
  bool is(std::size_t node, OpKind kind) const { return nodes_[node].kind == kind; }
  bool sole_consumer(std::size_t node, std::size_t consumer) const {
    return consumers_[node].size() == 1 && consumers_[node][0] == consumer;
  }

  // A ReLU before a pooling is done behind it, on fewer values: the maximum of ReLUs is the ReLU of the
  // maximum.
  bool relu_in_pool(std::size_t node) const {
    return is(node, OpKind::kRelu) && consumers_[node].size() == 1 &&
           is(consumers_[node][0], OpKind::kMaxPool2d);
  }

  // ---- tensors ----
  TensorId add(Tensor tensor) {
    schedule_.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(schedule_.tensors.size() - 1);
  }
  Dims with_rows(const Dims& dims) const {
    Dims full{rows_};
    full.insert(full.end(), dims.begin(), dims.end());
    return full;
  }
  TensorId arena(const Dims& dims, int element_bytes = 4) {
    return add({dims, Place::kArena, 0, element_bytes, false, -1});
  }
  TensorId label_tensor(std::int64_t each) { return add({{rows_, each}, Place::kLabels, 0, 4, false, -1}); }
  // The part of the key/value cache that is the next attention's.
  TensorId cache(std::size_t node);
  TensorId gradient_like(TensorId value) {
    const Dims dims = schedule_.tensors[static_cast<std::size_t>(value)].dims;
    return add({dims, Place::kArena, 0, 4, false, value});
  }
  TensorId parameter_gradient(Value parameter);
  TensorId operand(std::size_t node, std::size_t input) const {
    return tensor_[source_[index(nodes_[node].inputs[input])]];
  }
  std::vector<TensorId> operands(std::size_t node) const;

  // ---- emission ----
  Operation& emit(OperationKind kind, std::size_t node, std::vector<TensorId> inputs,
                  std::vector<TensorId> outputs);
  void forward(std::size_t node);
  void forward_unary(std::size_t node, OperationKind kind) {
    tensor_[node] = arena(with_rows(nodes_[node].dims));
    emit(kind, node, operands(node), {tensor_[node]});
  }
  void forward_product(std::size_t node, OperationKind kind);
  void forward_with_extras(std::size_t node, OperationKind kind, std::vector<TensorId> extras);
  void forward_attention(std::size_t node);
  void forward_loss(std::size_t node);

  void backward(std::size_t node);
  void backward_loss(std::size_t node);
  void backward_product(std::size_t node, OperationKind data, OperationKind weights);
  void backward_unary(std::size_t node, OperationKind kind, TensorId saved);
  void backward_pool(std::size_t node);
  void backward_input(std::size_t node, Place place);
  void backward_add(std::size_t node);
  void backward_multiply(std::size_t node);
  void backward_layer_norm(std::size_t node);
  TensorId gradient_of(std::size_t node);
  void contribute(std::size_t node, TensorId gradient) { contributions_[node].push_back(gradient); }
  std::size_t source(std::size_t node, std::size_t input) const {
    return source_[index(nodes_[node].inputs[input])];
  }

  void find_ready_ranges();

  const std::vector<Node>& nodes_;
  const ParameterLayout& layout_;
  const std::int64_t rows_;
  const std::vector<bool> reached_;

  std::vector<std::vector<std::size_t>> consumers_;  // by node, those that the loss needs
  std::vector<bool> needs_gradient_;
  std::vector<std::size_t>
      source_;  // the node that stands for this one: itself, or the operand of a vanished reshape
  std::vector<std::size_t> parameter_;                // by node: its place in layout_
  std::vector<TensorId> tensor_;                      // by node: its value
  std::vector<std::vector<TensorId>> extras_;         // by node: what its forward operation saved
  std::vector<std::vector<TensorId>> contributions_;  // by node
  std::vector<bool> relu_done_;         // by node: its contribution is already that of its operand
  std::vector<bool> gradient_written_;  // by place in layout_
  Schedule schedule_;
};

}  // namespace paceline::tensor
