#include "runtime/pserver/sparse/table_spec.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/status.h"

namespace paceline::pserver::sparse {

namespace {

bool is_name(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= kMaxTableName && std::all_of(name.begin(), name.end(), fits);
}

absl::Status bad(const TableSpec& spec, std::string_view field, double value, std::string_view must) {
  return absl::InvalidArgumentError(
      str_cat("table ", spec.name, ": ", field, " is ", value, " and must be ", must));
}

bool is_fraction(double value) {
  return value >= 0 && value < 1;
}
// As the float that it becomes.
bool is_positive(double value) {
  const auto single = static_cast<float>(value);
  return single > 0 && std::isfinite(single);
}
bool is_not_negative(double value) {
  return value >= 0 && std::isfinite(static_cast<float>(value));
}

absl::Status check_optimizer(const TableSpec& spec) {
  const RowOptimizer& rule = spec.optimizer;
  if (!is_positive(rule.learning_rate)) {
    return bad(spec, "learningRate", rule.learning_rate, "finite and above 0");
  }
  switch (rule.kind) {
    case RowOptimizer::Kind::kSgd:
      if (!is_fraction(rule.momentum)) return bad(spec, "momentum", rule.momentum, "at least 0 and below 1");
      return absl::OkStatus();
    case RowOptimizer::Kind::kAdam:
      if (!is_fraction(rule.beta1)) return bad(spec, "beta1", rule.beta1, "at least 0 and below 1");
      if (!is_fraction(rule.beta2)) return bad(spec, "beta2", rule.beta2, "at least 0 and below 1");
      [[fallthrough]];
    case RowOptimizer::Kind::kAdagrad:
      if (!is_positive(rule.epsilon)) return bad(spec, "epsilon", rule.epsilon, "finite and above 0");
      return absl::OkStatus();
    case RowOptimizer::Kind::kFtrl:
      if (!is_positive(rule.beta)) return bad(spec, "beta", rule.beta, "finite and above 0");
      if (!is_not_negative(rule.l1)) return bad(spec, "l1", rule.l1, "finite and not negative");
      if (!is_not_negative(rule.l2)) return bad(spec, "l2", rule.l2, "finite and not negative");
      return absl::OkStatus();
  }
  return bad(spec, "optimizer", static_cast<double>(rule.kind), "0 (SGD) to 3 (FTRL)");
}

}  // namespace

absl::Status check(const TableSpec& spec) {
  if (!is_name(spec.name)) {
    return absl::InvalidArgumentError(str_cat("a table's name is '", spec.name.substr(0, 2 * kMaxTableName),
                                              "' and must be 1 to ", kMaxTableName,
                                              " letters, digits, '-', '_' and '.'"));
  }
  if (spec.dim < 1 || spec.dim > kMaxDim) {
    return bad(spec, "dim", static_cast<double>(spec.dim), str_cat("1 to ", kMaxDim));
  }
  if (spec.initializer.kind > Initializer::Kind::kNormal) {
    return bad(spec, "initializer", static_cast<double>(spec.initializer.kind), "0 (zero) to 2 (normal)");
  }
  if (!is_not_negative(spec.initializer.scale)) {
    return bad(spec, "the initializer's scale", spec.initializer.scale, "finite and not negative");
  }
  if (spec.bound.evict > RowBound::Evict::kLeastFrequent) {
    return bad(spec, "evict", static_cast<double>(spec.bound.evict),
               "0 (least recent) or 1 (least frequent)");
  }
  return check_optimizer(spec);
}

absl::Status check(std::span<const TableSpec> specs) {
  if (specs.size() > kMaxTables) {
    return absl::InvalidArgumentError(str_cat(specs.size(), " sparse tables, at most ", kMaxTables));
  }
  for (std::size_t k = 0; k < specs.size(); ++k) {
    PL_RETURN_IF_ERROR(check(specs[k]));
    for (std::size_t other = 0; other < k; ++other) {
      if (specs[other].name == specs[k].name) {
        return absl::InvalidArgumentError(str_cat("two sparse tables are named ", specs[k].name));
      }
    }
  }
  return absl::OkStatus();
}

std::size_t row_floats(const TableSpec& spec) {
  return (1 + state_names(spec.optimizer).size()) * spec.dim;
}

std::vector<std::string> state_names(const RowOptimizer& optimizer) {
  switch (optimizer.kind) {
    case RowOptimizer::Kind::kAdagrad:
      return {"sum"};
    case RowOptimizer::Kind::kAdam:
      return {"exp_avg", "exp_avg_sq"};
    case RowOptimizer::Kind::kFtrl:
      return {"z", "n"};
    case RowOptimizer::Kind::kSgd:
      break;
  }
  if (optimizer.momentum > 0) return {"momentum"};
  return {};
}

}  // namespace paceline::pserver::sparse
