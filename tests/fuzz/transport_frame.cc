#include "runtime/transport/frame.h"

#include <algorithm>

#include "base/check.h"
#include "base/crc32c.h"
#include "runtime/transport/peer_watch.h"
#include "tests/fuzz/mended.h"
#include "tests/fuzz/target.h"

namespace paceline::fuzz {

// A frame's header, and a notice on a control connection: as they are, and with magic and checksum mended.
int fuzz_transport_frame(Input input) {
  std::array<std::byte, transport::kFrameHeaderBytes> good;
  transport::encode(transport::FrameHeader{}, good);
  for (const auto& bytes : {padded<good.size()>(input), mended(input, good, 6)}) {
    const auto header = transport::decode_frame(bytes);
    if (!header.ok()) continue;
    PL_CHECK(header->length <= transport::kMaxFrameBytes, "frames are bounded");
    transport::encode(*header, good);
    PL_CHECK(transport::decode_frame(good).value() == *header, "what is written is read back");
  }
  const auto notice_bytes = transport::encode(transport::Notice{});
  for (const auto& bytes : {padded<notice_bytes.size()>(input), mended(input, notice_bytes, 6)}) {
    const auto notice = transport::decode_notice(bytes);
    PL_CHECK(!notice.ok() || notice->fault.text.size() <= transport::kNoticeText, "notices are bounded");
  }
  return 0;
}

}  // namespace paceline::fuzz
