#include "cli/cluster/event_rows.h"

#include "base/text.h"
#include "cli/view/age.h"

namespace paceline::cli {

std::vector<std::string> event_header() {
  return {"AGE", "TYPE", "REASON", "OBJECT", "MESSAGE"};
}

std::vector<std::string> event_row(const EventView& event, WallTime now) {
  return {age_text(event.last, now), event.warning ? "Warning" : "Normal", event.reason, event.object,
          event.count > 1 ? str_cat(event.message, " (", event.count, " times)") : event.message};
}

}  // namespace paceline::cli
