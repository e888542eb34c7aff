#include "tests/unit/runtime/tensor/symbols.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/status.h"

namespace paceline::tensor {

namespace {

// The same for equal texts, in all schedules.
std::size_t number(const std::string& text) {
  static std::map<std::string, std::size_t> numbers;
  return numbers.emplace(text, numbers.size() + 1).first->second;
}

std::string text_of(const Operation& o) {
  return str_cat(operation_name(o.kind), " ", o.outputs.size(), o.relu ? " relu" : "",
                 o.negative ? " negative" : "", " ", o.attributes.heads, " ", o.attributes.stride, " ",
                 o.attributes.padding, " ", o.attributes.window, " ",
                 o.kind == OperationKind::kScale ? o.attributes.factor : 0, " ",
                 o.kind == OperationKind::kLayerNorm ? o.attributes.epsilon : 0);
}

class Run {
 public:
  explicit Run(const Schedule& schedule) : schedule_(schedule) {
    for (const Operation& operation : schedule.operations) {
      for (const Operation& part : parts_of(operation)) run(part);
      values_.erase(kBetween);
    }
  }
  std::vector<std::string> left;

 private:
  void run(const Operation& operation) {
    std::vector<std::size_t> operands;
    for (const TensorId id : operation.inputs) operands.push_back(value(id));
    if (operation.kind == OperationKind::kAdd) std::sort(operands.begin(), operands.end());  // commutes
    std::string from = text_of(operation);
    for (const std::size_t operand : operands) from += str_cat(" ", operand);
    for (std::size_t i = 0; i < operation.outputs.size(); ++i) {
      const TensorId id = operation.outputs[i];
      const std::size_t made = number(str_cat(from, " result ", i));
      if (in_arena(id)) {
        EXPECT_TRUE(values_.emplace(id, made).second) << "made twice: " << from;
        continue;
      }
      const Tensor& t = schedule_.tensors[static_cast<std::size_t>(id)];
      left.push_back(str_cat(static_cast<int>(t.place), " ", t.offset, " ", t.adds, " = ", made));
    }
  }
  std::size_t value(TensorId id) {
    if (in_arena(id)) {
      const auto found = values_.find(id);
      EXPECT_NE(found, values_.end()) << "tensor " << id << " is read before it is made";
      return found == values_.end() ? 0 : found->second;
    }
    const Tensor& t = schedule_.tensors[static_cast<std::size_t>(id)];
    return number(str_cat("place ", static_cast<int>(t.place), " ", t.offset));
  }
  bool in_arena(TensorId id) const {
    return id == kBetween || schedule_.tensors[static_cast<std::size_t>(id)].place == Place::kArena;
  }

  const Schedule& schedule_;
  std::map<TensorId, std::size_t> values_;
};

}  // namespace

std::vector<Operation> parts_of(const Operation& o) {
  const auto part = [&](OperationKind kind, std::vector<TensorId> inputs, std::vector<TensorId> outputs) {
    return Operation{kind, o.name, std::move(inputs), std::move(outputs), o.attributes, o.relu, o.negative};
  };
  const auto &in = o.inputs, &out = o.outputs;
  switch (o.kind) {
    case OperationKind::kEmbeddingAdd:
      return {part(OperationKind::kEmbedding, {in[0], in[1]}, {kBetween}),
              part(OperationKind::kAdd, {kBetween, in[2]}, out)};
    case OperationKind::kAddLayerNorm:
      return {part(OperationKind::kAdd, {in[0], in[1]}, {out[0]}),
              part(OperationKind::kLayerNorm, {out[0], in[2], in[3]}, {out[1], out[2], out[3]})};
    case OperationKind::kLinearGelu: {
      const TensorId sum = out.size() > 1 ? out[1] : kBetween;
      return {part(OperationKind::kLinear, in, {sum}), part(OperationKind::kGelu, {sum}, {out[0]})};
    }
    case OperationKind::kLinearGeluBackwardData:
      return {part(OperationKind::kLinearBackwardData, {in[0], in[1]}, {kBetween}),
              part(OperationKind::kGeluBackward, {kBetween, in[2]}, out)};
    default:
      return {o};
  }
}

std::vector<std::string> kinds_of(const std::vector<Operation>& operations) {
  std::vector<std::string> kinds;
  for (const Operation& operation : operations) kinds.emplace_back(operation_name(operation.kind));
  return kinds;
}

std::vector<std::string> left_by(const Schedule& schedule) {
  return Run(schedule).left;
}

}  // namespace paceline::tensor
