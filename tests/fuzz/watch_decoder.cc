#include "controller/cluster/kube/watch_decoder.h"

#include "base/check.h"
#include "controller/cluster/kube/api_error.h"
#include "controller/cluster/kube/job_object.h"
#include "controller/cluster/kube/pod.h"
#include "controller/cluster/kube/status_json.h"
#include "tests/fuzz/target.h"

namespace paceline::fuzz {

namespace {

// Makes of an event's object all that an informer does.
void use(const kube::WatchEvent& event) {
  PL_CHECK(event.object.is_object(), "an event has an object");
  if (event.type == kube::WatchEventType::kError) return (void)kube::error_of(event.object);
  if (const auto pod = kube::slim_pod(event.object)) {
    (void)kube::memory_of(*pod);
    (void)kube::to_cluster_pod(*pod);
  }
  const api::Metadata metadata = kube::job_metadata(event.object);
  const api::Parsed parsed = kube::parse_job(event.object, metadata);
  PL_CHECK(kube::errors_of(parsed.diagnostics).size() <= kube::kMaxSpecErrorBytes + 3, "errors are bounded");
  (void)kube::pod_templates_of(event.object);
  const kube::Json status = kube::status_to_json(kube::status_from_json(kube::at(event.object, {"status"})));
  PL_CHECK(kube::status_to_json(kube::status_from_json(status)) == status, "what is written is read back");
}

}  // namespace

// The first byte: the length of the pieces that the rest comes in; 0: all at once.
int fuzz_watch_decoder(Input input) {
  if (input.empty()) return 0;
  const std::string_view text = text_of(input.subspan(1));
  const std::size_t piece =
      input[0] == std::byte{0} ? text.size() + 1 : std::to_integer<std::size_t>(input[0]);
  std::vector<kube::Json> in_pieces, at_once;
  kube::WatchDecoder pieces, whole;
  absl::Status pieces_end, whole_end;
  for (std::size_t at = 0; at < text.size() && pieces_end.ok(); at += piece)
    pieces_end = pieces.feed(text.substr(at, piece), [&](const kube::WatchEvent& event) {
      use(event);
      in_pieces.push_back(event.object);
      return true;
    });
  whole_end = whole.feed(text, [&](const kube::WatchEvent& event) {
    at_once.push_back(event.object);
    return true;
  });
  PL_CHECK(pieces_end.code() == whole_end.code() && in_pieces == at_once, "pieces do not matter");
  PL_CHECK(pieces.finish().code() == whole.finish().code(), "pieces do not matter");
  return 0;
}

}  // namespace paceline::fuzz
