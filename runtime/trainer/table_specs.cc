#include "runtime/trainer/table_specs.h"

#include <cstdint>

#include "base/rng.h"
#include "runtime/model/wide_and_deep.h"

namespace paceline::trainer {

namespace {

using pserver::sparse::Initializer;
using pserver::sparse::RowBound;
using pserver::sparse::RowOptimizer;
using pserver::sparse::TableSpec;

constexpr std::uint64_t kTablesStream = 0x7461626c65730001u;

Initializer initializer_of(const tensor::Init& init) {
  switch (init.kind) {
    case tensor::Init::Kind::kNormal:
      return {Initializer::Kind::kNormal, init.value};
    case tensor::Init::Kind::kUniform:
      return {Initializer::Kind::kUniform, init.value};
    case tensor::Init::Kind::kConstant:
      break;  // 0: rows know no other
  }
  return {};
}

RowOptimizer::Kind kind_of(v1::RowOptimizerSpec::Type type) {
  switch (type) {
    case v1::RowOptimizerSpec::ADAGRAD:
      return RowOptimizer::Kind::kAdagrad;
    case v1::RowOptimizerSpec::ADAM:
      return RowOptimizer::Kind::kAdam;
    case v1::RowOptimizerSpec::FTRL:
      return RowOptimizer::Kind::kFtrl;
    default:
      return RowOptimizer::Kind::kSgd;
  }
}

void apply(const v1::TableSpec& from, TableSpec& to) {
  const v1::RowOptimizerSpec& rule = from.optimizer();
  to.optimizer.kind = kind_of(rule.type());
  to.optimizer.learning_rate = rule.learning_rate();
  to.optimizer.momentum = rule.momentum();
  to.optimizer.beta1 = rule.beta1();
  to.optimizer.beta2 = rule.beta2();
  to.optimizer.epsilon = rule.epsilon();
  to.optimizer.beta = rule.beta();
  to.optimizer.l1 = rule.l1();
  to.optimizer.l2 = rule.l2();
  to.bound.max_rows = static_cast<std::uint64_t>(from.max_rows());
  to.bound.evict = from.evict() == v1::TableSpec::LEAST_FREQUENT ? RowBound::Evict::kLeastFrequent
                                                                 : RowBound::Evict::kLeastRecent;
}

}  // namespace

std::vector<TableSpec> table_specs(const v1::TrainingSpec& spec) {
  std::vector<TableSpec> specs;
  if (!spec.model().has_wide_and_deep()) return specs;
  for (const model::TableShape& shape : model::WideAndDeep(spec.model().wide_and_deep()).tables()) {
    TableSpec table;
    table.name = shape.name;
    table.dim = static_cast<std::size_t>(shape.width);
    table.seed = mix64(mix64(spec.seed() + kTablesStream) + specs.size());
    table.initializer = initializer_of(shape.init);
    for (const v1::TableSpec& said : spec.parameter_server().tables()) {
      if (said.name() == shape.name) apply(said, table);
    }
    specs.push_back(std::move(table));
  }
  return specs;
}

}  // namespace paceline::trainer
