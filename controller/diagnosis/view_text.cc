#include "controller/diagnosis/view_text.h"

#include <vector>

#include "base/clock.h"
#include "base/pluralize.h"
#include "base/text.h"

namespace paceline::diagnosis {

namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += str_cat(i == 0 ? "" : i + 1 == names.size() ? " and " : ", ", names[i]);
  return text;
}

std::string duration(double seconds) {
  return format_duration(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
}

}  // namespace

std::string members_of(const api::ViewChange& change) {
  if (change.restarted) return "all members started again";
  std::string text = change.left.empty() ? "" : str_cat(joined(change.left), " left");
  if (!change.came.empty()) text += str_cat(text.empty() ? "" : ", ", joined(change.came), " came");
  return text.empty() ? "the same members" : text;
}

std::string times_of(const api::ViewChange& change) {
  constexpr double kSoon = 0.0005;
  const bool tells = change.noticed_seconds.value_or(0) >= kSoon;
  const std::string noticed = tells ? str_cat("noticed after ", duration(*change.noticed_seconds), ", ") : "";
  const double first_step = change.view_seconds + change.state_seconds + change.step_seconds;
  const std::string to_the_view =
      change.restarted ? "" : str_cat(duration(change.view_seconds), " to the view, ");
  return str_cat(
      noticed, "first step after ", duration(first_step), " (", to_the_view, duration(change.state_seconds),
      " to one state, ", duration(change.step_seconds), " for the step), ",
      change.steps_lost == 0 ? "no step" : pluralize(change.steps_lost, "step", "steps"), " lost",
      change.steps_lost > 0 || change.restarted ? str_cat(": it goes on from step ", change.step - 1) : "");
}

std::string text_of(const api::ViewChange& change) {
  // More was told of a loss when it was noticed.
  const bool tells_why = !change.noticed_seconds && !change.message.empty();
  return str_cat("view ", change.generation.value, " trains: ", members_of(change),
                 tells_why ? str_cat(" (", change.message, ")") : "", "; ", times_of(change));
}

}  // namespace paceline::diagnosis
