#include "cli/view/load_text.h"

#include "base/text.h"
#include "cli/view/terminal.h"

namespace paceline::cli {

std::string load_text(const std::optional<MachineLoad>& load) {
  if (!load) return "";
  const std::string text =
      str_cat("over the last minute ", fixed(load->threads, 1), " threads wanted this machine's ",
              load->processors, load->processors == 1 ? " processor" : " processors");
  if (load->threads <= load->processors) return text;
  return str_cat(text,
                 ": it may just not have got to run; give the machine less to do, or the job fewer members");
}

}  // namespace paceline::cli
