#include "runtime/tensor/join.h"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace paceline::tensor {

namespace {

class Joiner {
 public:
  Joiner(Schedule schedule, const Joins& joins)
      : schedule_(std::move(schedule)),
        joins_(joins),
        readers_(schedule_.tensors.size(), 0),
        last_(schedule_.tensors.size(), 0) {
    for (std::size_t o = 0; o < schedule_.operations.size(); ++o) {
      for (const TensorId id : schedule_.operations[o].inputs) {
        ++readers_[index(id)];
        last_[index(id)] = o;
      }
    }
  }

  Schedule run() {
    const std::size_t count = schedule_.operations.size();
    std::vector<Operation> made;
    std::vector<std::size_t> place(count + 1);  // of each operation in what is made
    for (std::size_t o = 0; o < count; ++o) {
      place[o] = made.size();
      std::optional<Operation> both;
      if (o + 1 < count && o + 1 != schedule_.forward_count) both = joined(o);
      if (both.has_value()) place[++o] = made.size();
      made.push_back(both.has_value() ? *std::move(both) : std::move(schedule_.operations[o]));
    }
    place[count] = made.size();
    schedule_.operations = std::move(made);
    schedule_.forward_count = place[schedule_.forward_count];
    for (ReadyRange& range : schedule_.ready) range.operation = place[range.operation];
    return std::move(schedule_);
  }

 private:
  // Operation `o` and the next one as one.
  std::optional<Operation> joined(std::size_t o) const {
    const Operation &first = schedule_.operations[o], &second = schedule_.operations[o + 1];
    const TensorId between = first.outputs[0];
    if (second.inputs[0] != between) return std::nullopt;
    const bool alone = readers_[index(between)] == 1;
    switch (first.kind) {
      case OperationKind::kEmbedding:
        if (!joins_.embedding_add || !alone || second.kind != OperationKind::kAdd ||
            !of_weights(second.inputs[1]))
          return std::nullopt;
        return made(OperationKind::kEmbeddingAdd, first, {first.inputs[0], first.inputs[1], second.inputs[1]},
                    second.outputs);
      case OperationKind::kAdd:
        if (!joins_.add_layer_norm || second.kind != OperationKind::kLayerNorm || of_weights(first.inputs[1]))
          return std::nullopt;
        return add_layer_norm(o);
      case OperationKind::kLinear: {
        if (!joins_.linear_gelu || second.kind != OperationKind::kGelu || first.relu) return std::nullopt;
        std::vector<TensorId> outputs = second.outputs;
        // Of a training schedule it is always left: whoever makes it again does so by the same operation.
        if (schedule_.training || !alone) outputs.push_back(between);
        return made(OperationKind::kLinearGelu, first, first.inputs, std::move(outputs));
      }
      case OperationKind::kLinearBackwardData:
        if (!joins_.linear_gelu || !alone || second.kind != OperationKind::kGeluBackward) return std::nullopt;
        return made(OperationKind::kLinearGeluBackwardData, first,
                    {first.inputs[0], first.inputs[1], second.inputs[1]}, second.outputs);
      default:
        return std::nullopt;
    }
  }

  // The sum may lie where its second operand lies: that is one which nobody reads any more, if there is one,
  // and of two the older: so a residual stream stays where it is.
  Operation add_layer_norm(std::size_t o) const {
    const Operation &add = schedule_.operations[o], &norm = schedule_.operations[o + 1];
    TensorId a = add.inputs[0], b = add.inputs[1];
    if (last_[index(a)] == o && (last_[index(b)] > o || a < b)) std::swap(a, b);
    std::vector<TensorId> outputs = add.outputs;
    outputs.insert(outputs.end(), norm.outputs.begin(), norm.outputs.end());
    return made(OperationKind::kAddLayerNorm, norm, {a, b, norm.inputs[1], norm.inputs[2]},
                std::move(outputs));
  }

  static Operation made(OperationKind kind, const Operation& named, std::vector<TensorId> inputs,
                        std::vector<TensorId> outputs) {
    return {kind, named.name, std::move(inputs), std::move(outputs), named.attributes, false, false};
  }
  bool of_weights(TensorId id) const { return schedule_.tensors[index(id)].place == Place::kWeights; }

  Schedule schedule_;
  const Joins joins_;
  std::vector<int> readers_;       // by tensor: how many times it is read
  std::vector<std::size_t> last_;  // by tensor: the last operation that reads it
};

}  // namespace

Schedule join_products(Schedule schedule, const Joins& joins) {
  return Joiner(std::move(schedule), {.linear_gelu = joins.linear_gelu}).run();
}

Schedule join_sums(Schedule schedule, const Joins& joins) {
  return Joiner(std::move(schedule),
                {.embedding_add = joins.embedding_add, .add_layer_norm = joins.add_layer_norm})
      .run();
}

}  // namespace paceline::tensor
