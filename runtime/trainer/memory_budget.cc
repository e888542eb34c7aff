#include "runtime/trainer/memory_budget.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/status.h"
#include "runtime/optimizer/step_terms.h"
#include "runtime/tensor/memory_plan.h"

namespace paceline::trainer {

namespace {

std::string optimizer_name(v1::OptimizerSpec::Type type) {
  switch (type) {
    case v1::OptimizerSpec::ADAM:
      return "Adam";
    case v1::OptimizerSpec::ADAMW:
      return "AdamW";
    case v1::OptimizerSpec::ADAGRAD:
      return "Adagrad";
    default:
      return "SGD";
  }
}

// Gives "a", "a and b", or "a, b and c".
std::string listed(const std::vector<std::string>& parts, const char* last) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += str_cat(i == 0 ? "" : i + 1 == parts.size() ? last : ", ", parts[i]);
  return text;
}

std::string mib(std::size_t bytes) {
  return str_cat(tensor::mebibytes(bytes), " MiB");
}

// The beginning of the error: the vectors that do not fit, the memory, and the bytes that they need.
std::string what_needs(const LastingMemory& needs, const char* memory) {
  std::vector<std::string> names = {"weights"},
                           amounts = {str_cat(mib(needs.weights), " for weights",
                                              needs.gradient + needs.passes > 0
                                                  ? ""
                                                  : ", before any gradient and optimizer state")};
  if (needs.gradient > 0) {
    names.emplace_back("gradient");
    amounts.push_back(str_cat(mib(needs.gradient), " for the gradient"));
  }
  if (needs.state > 0) {
    names.emplace_back("optimizer state");
    amounts.push_back(str_cat(mib(needs.state), " for ", needs.optimizer, "'s state"));
  }
  if (needs.half_weights > 0) amounts.push_back(str_cat(mib(needs.half_weights), " for weights as bf16"));
  if (needs.passes > 0) {
    names.emplace_back("passes");
    amounts.push_back(str_cat(mib(needs.passes), " for passes"));
  }
  return str_cat(listed(names, " and "), " find no room in ", memory, " (out of memory): they need ",
                 mib(needs.total()), " (", listed(amounts, ", "), "), and ");
}

std::string less_state(const LastingMemory& needs) {
  return str_cat("an optimizer with less state (SGD without momentum keeps none: ",
                 mib(needs.total() - needs.state), ")");
}

}  // namespace

LastingMemory lasting_memory(const v1::TrainingSpec& spec, std::size_t elements, Holding holding) {
  const std::size_t vector = elements * sizeof(float);
  LastingMemory memory{.weights = holding == Holding::kCopiesAndEvaluates ? 2 * vector : vector,
                       .gradient = holding == Holding::kReads ? 0 : vector,
                       .half_weights = spec.precision() == v1::PRECISION_BF16 ? vector / 2 : 0,
                       .optimizer = optimizer_name(spec.optimizer().type())};
  if (holding == Holding::kTrains) memory.state = optimizer::state_names(spec.optimizer()).size() * vector;
  return memory;
}

std::string room_at_begin_text(std::size_t free_at_begin, int members) {
  return str_cat(
      tensor::free_mebibytes(free_at_begin), " MiB were free when this member began",
      members > 1 ? str_cat(", and ", members, " members of this job share the device") : std::string());
}

const char* more_memory(bool gpu) {
  return gpu ? "a GPU with more memory" : "a machine with more memory";
}

absl::Status evaluation_room(const absl::Status& compiled, std::int64_t rows, bool waited, bool gpu) {
  if (!absl::IsResourceExhausted(compiled)) return compiled;
  return absl::ResourceExhaustedError(str_cat(
      "evaluation finds no room (out of memory): ", compiled.message(),
      rows == 1 ? str_cat("; take ", more_memory(gpu), " or a smaller model")
      : waited  ? "; set training.evaluation.batchSize to what fits: what training takes has its room already"
                : "; set training.evaluation.batchSize to what fits"));
}

absl::Status check_room(const LastingMemory& needs, const FoundRoom& found) {
  const std::size_t spare = found.now.total_bytes / tensor::kDriversPart;
  const std::size_t there = found.now.free_bytes + found.taken;
  const std::size_t free = there - std::min(there, spare);
  const std::size_t total = needs.total();
  if (total <= std::max(free, found.taken)) return absl::OkStatus();

  const auto helps = [&](std::size_t bytes) { return bytes > 0 && total <= free + bytes; };
  std::vector<std::string> advice = {str_cat("take ", more_memory(true)), "a smaller model"};
  if (found.members > 1) advice.emplace_back("fewer members on each GPU");
  if (helps(needs.state)) advice.push_back(less_state(needs));
  if (helps(needs.half_weights)) advice.emplace_back("precision FP32, which keeps no weights as bf16");
  if (helps(found.evaluation))
    advice.push_back(str_cat("a smaller evaluation.batchSize (its passes hold ", mib(found.evaluation), ")"));
  if (helps(found.training))
    advice.push_back(str_cat("a smaller microBatchSize (passes hold ", mib(found.training), ")"));

  return absl::ResourceExhaustedError(
      str_cat(what_needs(needs, "the device's memory"), tensor::free_mebibytes(free), " of its ",
              mib(found.now.total_bytes), " are free for them, beside ", tensor::mebibytes(spare),
              " for the driver; ", room_at_begin_text(found.free_at_begin, found.members),
              found.members == 0 && found.free_at_begin + spare < found.now.total_bytes
                  ? ", the rest was held by others, as by members on the same GPU"
                  : "",
              "; ", listed(advice, " or ")));
}

std::optional<HostShortage> host_shortage(const LastingMemory& needs, const HostRoom& room) {
  using enum HostShortage::Bound;
  constexpr std::uint64_t kNoBound = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t machine = room.machine.value_or(kNoBound);
  const std::uint64_t limit = room.address_space.value_or(kNoBound);
  const std::uint64_t share = room.members > 1 && room.at_begin.has_value()
                                  ? *room.at_begin / static_cast<std::uint64_t>(room.members)
                                  : kNoBound;
  const std::uint64_t free = std::min({machine, limit, share});
  const std::size_t total = needs.total();
  if (total <= free) return std::nullopt;
  const bool more_memory = total > std::min(machine, share);
  return HostShortage{.bound = limit == free     ? kAddressSpace
                               : machine == free ? kMachine
                                                 : kShare,
                      .free = free,
                      .more_memory = more_memory,
                      .higher_limit = total > limit,
                      .fewer_members = more_memory && total <= std::min(machine, limit),
                      .less_state = needs.state > 0 && total - needs.state <= free,
                      .smaller_passes = needs.least_passes < needs.passes &&
                                        total - needs.passes + needs.least_passes <= free};
}

absl::Status check_host_room(const LastingMemory& needs, const HostRoom& room) {
  const std::optional<HostShortage> lacks = host_shortage(needs, room);
  if (!lacks.has_value()) return absl::OkStatus();
  std::vector<std::string> advice = {str_cat(lacks->more_memory ? more_memory(false) : "",
                                             lacks->more_memory && lacks->higher_limit ? " and " : "",
                                             lacks->higher_limit ? "a higher limit (ulimit -v)" : "")};
  if (lacks->fewer_members) advice.emplace_back("fewer members on this machine");
  advice.emplace_back("a smaller model");
  if (lacks->less_state) advice.push_back(less_state(needs));
  if (lacks->smaller_passes)
    advice.push_back(str_cat("a smaller microBatchSize or evaluation.batchSize (passes of one sample take ",
                             mib(needs.least_passes), ")"));
  const bool limited = lacks->bound == HostShortage::Bound::kAddressSpace;
  return absl::ResourceExhaustedError(
      str_cat(what_needs(needs, limited ? "this process's address space" : "this machine's memory"),
              tensor::free_mebibytes(lacks->free),
              limited ? " MiB are left of its limit (ulimit -v)"
              : lacks->bound == HostShortage::Bound::kMachine
                  ? " MiB are free"
                  : str_cat(" MiB are free for each of the ", room.members, " members on this machine"),
              "; take ", listed(advice, " or ")));
}

}  // namespace paceline::trainer
