#include "runtime/pserver/abort.h"

#include "base/status.h"
#include "runtime/collective/fault.h"

namespace paceline::pserver {

absl::Status read_abort(const Link& link, Bytes message, std::size_t members) {
  AbortMessage abort;
  PL_RETURN_IF_ERROR(decode(message, abort));
  const absl::Status status(static_cast<absl::StatusCode>(abort.code),
                            str_cat(link.name(), " ended: ", abort.text));
  const bool somebody = abort.blamed >= 0 && static_cast<std::size_t>(abort.blamed) < members;
  return collective::with_faulty_rank(status, somebody ? abort.blamed : link.rank());
}

}  // namespace paceline::pserver
