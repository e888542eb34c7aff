#include "controller/diagnosis/preflight_text.h"

#include "base/pluralize.h"
#include "base/text.h"
#include "controller/diagnosis/straggler_text.h"

namespace paceline::diagnosis {

std::string figures_of(const api::UnfitMember& member) {
  const char* const test = member.part == api::PreflightPart::kCompute ? "compute test" : "link test";
  if (member.ms <= 0) return str_cat("it did not finish the ", test, " in time");
  return str_cat(factor_text(member.factor), " the others' median in the ", test, " (",
                 milliseconds_text(member.ms), ", theirs ", milliseconds_text(member.typical_ms), ")");
}

std::string text_of(const api::UnfitMember& member, const std::string& told) {
  const std::string where = member.host.empty() ? "" : str_cat(" on ", member.host);
  const std::string then = member.excluded      ? "; it is excluded"
                           : member.why.empty() ? ""
                           : member.why == told ? "; it stays, too"
                                                : str_cat("; it stays: ", member.why);
  return str_cat(member_name(member.role, member.index), where, ": ", figures_of(member), then);
}

std::string message_of(const api::Preflight& result, const std::string& why) {
  using enum api::PreflightOutcome;
  const std::string left_out = result.left_out == 0
                                   ? ""
                                   : str_cat("; ", pluralize(result.left_out, "member is", "members are"),
                                             " not tested, of a release that does not know the check");
  if (result.outcome == kFailed)
    return str_cat("nothing is known of the members before the first step: ", why, left_out,
                   "; training begins all the same");
  const std::string time = milliseconds_text(result.seconds * 1000);
  if (result.outcome == kPassed) {
    std::string figures =
        result.compute_ms > 0 ? str_cat("compute ", milliseconds_text(result.compute_ms)) : "";
    if (result.link_ms > 0)
      figures += str_cat(figures.empty() ? "" : ", ", "link ", milliseconds_text(result.link_ms));
    return str_cat("all ", result.members, " members pass the check before the first step, in ", time,
                   figures.empty() ? "" : str_cat(" (medians: ", figures, ")"), left_out);
  }
  std::string text, told;
  for (const api::UnfitMember& each : result.unfit) {
    text += str_cat(text.empty() ? "" : "; ", text_of(each, told));
    if (!each.why.empty()) told = each.why;
  }
  return str_cat(result.unfit.size(), " of ", pluralize(result.members, "member", "members"),
                 result.unfit.size() == 1 ? " fails" : " fail", " the check before the first step: ", text,
                 left_out);
}

}  // namespace paceline::diagnosis
