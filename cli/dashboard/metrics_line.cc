#include "cli/dashboard/metrics_line.h"

#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "cli/plot/json_line.h"
#include "controller/cluster/kube/json.h"

namespace paceline::cli {

namespace {

using kube::Json;

// In the order of dashboard::kParts.
constexpr std::array<const char*, 7> kPartFields = {"inputMs",  "computeMs",    "waitMs", "transferMs",
                                                    "updateMs", "checkpointMs", "stepMs"};
static_assert(kPartFields.size() == dashboard::kParts.size());

double number_in(const Json& line, const char* field) {
  return kube::number_at(line, {field}).value_or(std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

bool add_metrics_line(std::string_view text, dashboard::JobSeries& series) {
  const Json line = parse_json_line(text);
  if (line.is_null()) return false;
  const std::string& type = kube::text_at(line, {"type"});
  if (type == "view") {
    std::vector<std::string> members;
    for (const Json& member : kube::list_at(line, {"members"})) {
      if (member.is_string()) members.push_back(member.get<std::string>());
    }
    series.set_view(std::move(members));
    return true;
  }
  const Json& told = kube::at(line, {"step"});
  if (!told.is_number_integer()) return false;
  const Step step = told.get<std::int64_t>();
  if (step < 0 || step > kMostCount) return false;
  if (type == "step") {
    series.add(dashboard::StepPoint{.step = step,
                                    .loss = number_in(line, "loss"),
                                    .learning_rate = number_in(line, "learningRate"),
                                    .seconds = number_in(line, "timeSeconds")});
    return true;
  }
  if (type == "evaluation") {
    series.add(dashboard::EvaluationPoint{.step = step,
                                          .loss = number_in(line, "loss"),
                                          .accuracy = number_in(line, "accuracy"),
                                          .seconds = number_in(line, "timeSeconds"),
                                          .auc = kube::number_at(line, {"auc"})});
    return true;
  }
  if (type != "memberStep") return false;
  dashboard::MemberPoint point{.member = kube::text_at(line, {"member"}), .step = step};
  if (point.member.empty()) return false;
  for (std::size_t i = 0; i < kPartFields.size(); ++i)
    point.ms[i] = static_cast<float>(number_in(line, kPartFields[i]));
  series.add(point);
  return true;
}

}  // namespace paceline::cli
