#include "runtime/checkpoint/manifest.h"

#include "base/check.h"
#include "tests/fuzz/target.h"

namespace paceline::fuzz {

int fuzz_checkpoint_manifest(Input input) {
  const auto manifest = checkpoint::parse_manifest(text_of(input));
  if (!manifest.ok()) return 0;
  PL_CHECK(manifest->files.size() <= checkpoint::kMaxCheckpointFiles, "files are bounded");
  for (const checkpoint::FileEntry& file : manifest->files)
    PL_CHECK(!file.name.empty() && file.name[0] != '.' && file.name.find('/') == std::string::npos,
             "a file lies in the checkpoint's folder");
  const std::string written = checkpoint::encode_manifest(*manifest);
  const auto again = checkpoint::parse_manifest(written);
  PL_CHECK(again.ok() && checkpoint::encode_manifest(*again) == written, "what is written is read back");
  return 0;
}

}  // namespace paceline::fuzz
