#include "cli/view/load_text.h"

#include "base/text.h"
#include "cli/view/terminal.h"

namespace paceline::cli {

std::string load_text(const std::optional<MachineLoad>& load) {
  if (!load) return "";
  const char* const many = load->processors == 1 ? " processor" : " processors";
  const bool fewer = load->usable < load->processors;
  const std::string there =
      fewer ? str_cat("this run may use ", load->usable, " of the machine's ") : "the machine has ";
  const std::string text =
      str_cat("over the last minute ", fixed(load->threads, 1),
              " threads ran or waited for a processor or a disk, and ", there, load->processors, many);
  if (load->threads <= (fewer ? load->usable : load->processors)) return text;
  return str_cat(text,
                 ": it may just not have got to run; give the machine less to do, or the job fewer members");
}

}  // namespace paceline::cli
