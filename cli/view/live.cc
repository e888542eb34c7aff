#include "cli/view/live.h"

#include "base/sanitize.h"
#include "base/status.h"
#include "cli/view/dashboard.h"
#include "cli/view/sanitize.h"

namespace paceline::cli {

absl::Status show_live(std::ostream& out, const LiveView& view) {
  Terminal terminal = view.terminal;
  Frame frame;
  PL_ASSIGN_OR_RETURN(RunState run, view.look());
  while (out) {
    if (terminal.interactive && view.size) {
      const Terminal now = view.size();
      terminal.columns = now.columns;
      terminal.rows = now.rows;
    }
    const std::string note = view.note ? view.note() : "";
    Terminal above = terminal;
    if (!note.empty() && above.rows > 0) --above.rows;
    auto lines = render_dashboard(run, above);
    if (!note.empty())
      lines.push_back(terminal.interactive ? fit(terminal, sanitize_line(note), terminal.columns - 1)
                                           : sanitize_line(note));
    if (terminal.interactive) {
      write_frame(out, frame.draw(lines));
      out.flush();
    } else {
      for (const std::string& line : lines) out << line << "\n";
      if (!view.once && !is_finished(run)) out << "\n";  // between one look and the next
      out << std::flush;
    }
    if (view.once || is_finished(run) || !view.wait()) break;
    PL_ASSIGN_OR_RETURN(run, view.look());
  }
  if (is_finished(run) && !run.message.empty()) out << "\n" << sanitize(run.message) << "\n";
  return absl::OkStatus();
}

}  // namespace paceline::cli
