#include "cli/view/gpus_view.h"

#include "base/text.h"
#include "cli/view/fit_columns.h"

namespace paceline::cli {

namespace {

constexpr Column kGpuColumns[] = {{"GPU OF"},           {"INDEX", true, 7},       {"GPU", false, 2},
                                  {"UUID", false, 1},   {"COMPUTE ms", true, 12}, {"UPDATE ms", true, 6},
                                  {"LOAD", true},       {"MEM LOAD", true, 5},    {"MiB", true, 8},
                                  {"SM MHz", true, 11}, {"MEM MHz", true, 3},     {"HEAT", true, 9},
                                  {"POWER W", true, 4}, {"SLOWED BY", false, 13}, {"ERRORS", false, 10}};

std::string ms_or_dash(const std::optional<double>& time) {
  return time ? fixed(*time, *time < 100 ? 2 : 0) : "-";
}
std::string percent_or_dash(const std::optional<double>& share) {
  return share ? fixed(*share * 100, 0) + " %" : "-";
}

// "1,755 of 1,980"
std::string of_most(const std::optional<std::string>& now, const std::optional<std::string>& most) {
  if (!now) return "-";
  return most ? str_cat(*now, " of ", *most) : *now;
}

std::optional<std::string> count(const std::optional<std::int64_t>& number) {
  return number ? std::optional(with_commas(*number)) : std::nullopt;
}
std::optional<std::string> watts(const std::optional<double>& power) {
  return power ? std::optional(fixed(*power, 0)) : std::nullopt;
}

// "2 Xids (79), 1 uncorrected ECC, 3 PCIe replays"; corrected errors do no harm.
std::string errors(const GpuTelemetry& gpu) {
  std::string text;
  const auto add = [&](std::int64_t number, std::string words) {
    if (number > 0) text += str_cat(text.empty() ? "" : ", ", with_commas(number), " ", words);
  };
  add(gpu.xids, str_cat(gpu.xids == 1 ? "Xid" : "Xids", " (", gpu.last_xid, ")"));
  add(gpu.uncorrected_ecc_errors.value_or(0), "uncorrected ECC");
  add(gpu.pcie_replays.value_or(0), gpu.pcie_replays == 1 ? "PCIe replay" : "PCIe replays");
  return text.empty() ? "-" : text;
}

std::string slowed_by(const GpuTelemetry& gpu) {
  std::string text;
  for (const std::string& reason : gpu.slowdowns) text += str_cat(text.empty() ? "" : ", ", reason);
  return text.empty() ? "-" : text;
}

Row gpu_row(const api::MemberStatus& member) {
  const GpuTelemetry& gpu = *member.telemetry.gpu;
  return {member_name(member.role, member.index),
          gpu.index ? str_cat(*gpu.index) : "-",
          gpu.name,
          gpu.uuid.empty() ? "-" : gpu.uuid,
          ms_or_dash(gpu.compute_ms),
          ms_or_dash(gpu.update_ms),
          percent_or_dash(gpu.utilization),
          percent_or_dash(gpu.memory_utilization),
          of_most(count(gpu.memory_used_mib), count(gpu.memory_total_mib)),
          of_most(count(gpu.sm_clock_mhz), count(gpu.most_sm_clock_mhz)),
          of_most(count(gpu.memory_clock_mhz), count(gpu.most_memory_clock_mhz)),
          gpu.temperature_celsius ? str_cat(*gpu.temperature_celsius, " C") : "-",
          of_most(watts(gpu.power_watts), watts(gpu.power_limit_watts)),
          slowed_by(gpu),
          errors(gpu)};
}

}  // namespace

std::vector<std::string> render_gpus(const RunState& state, const Terminal& terminal, int width, int most) {
  constexpr int kHead = 2;
  std::vector<Row> rows;
  for (const api::MemberStatus& member : state.members) {
    if (member.telemetry.gpu && static_cast<int>(rows.size()) + kHead < most) rows.push_back(gpu_row(member));
  }
  if (rows.empty()) return {};
  std::vector<std::string> lines = fit_table(kGpuColumns, std::move(rows), width);
  lines[0] = styled(terminal, Style::kDim, lines[0]);
  lines.insert(lines.begin(), "");
  return lines;
}

}  // namespace paceline::cli
