#include "controller/diagnosis/straggler_text.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/clock.h"
#include "base/pluralize.h"
#include "base/text.h"

namespace paceline::diagnosis {

std::string milliseconds_text(double ms) {
  return format_duration(std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(ms)));
}

std::string subject_of(const api::Straggler& straggler) {
  if (straggler.kind == api::StragglerKind::kSlowLink)
    return str_cat("the link from ", member_name(straggler.role, straggler.index), " to ", straggler.peer);
  if (straggler.kind != api::StragglerKind::kAllSlow) return member_name(straggler.role, straggler.index);
  if (straggler.members == 0) return "all members";
  const std::vector<std::string>& names = straggler.slow_members;
  if (names.empty()) return pluralize(straggler.members, "member", "members");
  constexpr std::size_t kMostNames = 4;
  std::string text;
  const std::size_t named = std::min(names.size(), kMostNames);
  const std::int64_t others = straggler.members - static_cast<std::int64_t>(named);
  for (std::size_t i = 0; i < named; ++i) {
    const bool last = i + 1 == named && others == 0;
    text += str_cat(i == 0 ? "" : last ? " and " : ", ", names[i]);
  }
  return others == 0 ? text : str_cat(text, " and ", others, " more");
}

std::string factor_text(double factor) {
  constexpr double kTenths = 10, kHundredths = 100;
  const double unit = factor >= kTenths ? 1 : factor >= 2 ? kTenths : kHundredths;
  return str_cat(std::round(factor * unit) / unit, "x");
}

std::string message_of(const api::Straggler& straggler) {
  const std::string figures = str_cat(" for ", pluralize(straggler.steps, "step", "steps"), " (",
                                      milliseconds_text(straggler.own_ms), ", ");
  const std::string factor = factor_text(straggler.factor), typical = milliseconds_text(straggler.typical_ms),
                    subject = subject_of(straggler);
  if (straggler.kind == api::StragglerKind::kAllSlow && straggler.members == 0)
    return str_cat(subject, ": ", factor, " their own usual time of a step", figures, "before ", typical,
                   "), in ", straggler.part);
  if (straggler.kind == api::StragglerKind::kSlowLink)
    return str_cat(subject, ": ", factor, " the others' median time for as many bytes (",
                   milliseconds_text(straggler.own_ms), " of a step, theirs ", typical, "); ",
                   straggler.evidence);
  const std::string where = straggler.host.empty() ? "" : str_cat(" on ", straggler.host);
  std::string text = str_cat(subject, where, ": ", factor, " the others' median", figures, "theirs ", typical,
                             "), in ", straggler.part);
  if (straggler.kind == api::StragglerKind::kMoreWork)
    return text + "; it has more work, and is no slower for it";
  if (straggler.kind == api::StragglerKind::kAllSlow)
    return text + "; so many at once have a cause in common";
  return str_cat(
      text, "; ",
      straggler.evidence.empty() ? "nothing that it tells of itself says why" : straggler.evidence);
}

std::string link_evidence(double bytes_per_second, double again) {
  constexpr double kSeldom = 0.001, kPercent = 100, kMega = 1e6;
  const double rate = bytes_per_second / kMega, unit = rate >= 100 ? 1 : rate >= 1 ? 10 : 100;
  const std::string lost = again < kSeldom ? ""
                                           : str_cat("; ", std::max(1.0, std::round(again * kPercent)),
                                                     " % of its segments were sent again");
  return str_cat("it moves ", std::round(rate * unit) / unit, " MB/s while it has something to send", lost);
}

std::string end_of(const api::Straggler& straggler) {
  if (straggler.kind == api::StragglerKind::kAllSlow && straggler.members == 0)
    return "a step takes its usual time again";
  const bool one = straggler.kind != api::StragglerKind::kAllSlow;
  return str_cat(subject_of(straggler), one ? " holds" : " hold", " the others back no more");
}

std::string text_of(const api::StragglerReplacement& replacement) {
  if (!replacement.message.empty()) return replacement.message;
  return str_cat("pod ", replacement.successor, " is to take over from pod ", replacement.pod);
}

}  // namespace paceline::diagnosis
