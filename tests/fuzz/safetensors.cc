#include "runtime/checkpoint/safetensors.h"

#include "base/bytes.h"
#include "base/check.h"
#include "runtime/checkpoint/safetensors_file.h"
#include "tests/fuzz/target.h"

namespace paceline::fuzz {

namespace {

void check_header(const checkpoint::SafetensorsHeader& header, std::uint64_t file_bytes) {
  std::uint64_t end = 0;
  std::vector<checkpoint::TensorShape> shapes;
  for (const checkpoint::TensorEntry& tensor : header.tensors) {
    PL_CHECK(tensor.begin == end && tensor.end >= tensor.begin, "tensors lie next to each other");
    end = tensor.end;
    shapes.push_back({tensor.name, tensor.dtype, tensor.dims});
  }
  PL_CHECK(header.data_begin <= file_bytes && end == file_bytes - header.data_begin, "tensors are the data");
  const auto written = checkpoint::encode_header_of(shapes, header.metadata);
  PL_CHECK(written.ok(), "what was read can be written");
  const auto again = checkpoint::parse_header(checkpoint::text_bytes(*written), written->size() + end);
  PL_CHECK(again.ok() && again->tensors.size() == shapes.size(), "what is written is read back");
}

}  // namespace

// The bytes as a whole file; and as the number of bytes of its data and the header's JSON.
int fuzz_safetensors(Input input) {
  if (const auto header = checkpoint::parse_header(input, input.size()); header.ok()) {
    check_header(*header, input.size());
    const auto loaded = checkpoint::parse_safetensors({input.begin(), input.end()});
    PL_CHECK(loaded.ok(), "its header is whole");
    for (const checkpoint::TensorView& tensor : loaded->tensors)
      PL_CHECK(tensor.data.empty() ||
                   (tensor.data.data() >= loaded->bytes.data() &&
                    tensor.data.data() + tensor.data.size() <= loaded->bytes.data() + loaded->bytes.size()),
               "tensors point into the file");
  }
  ByteReader reader(input);
  const std::uint64_t data = reader.u64() >> 1;
  ByteWriter writer;
  const auto json = reader.bytes(reader.remaining());
  writer.u64(json.size());
  writer.bytes(json);
  const std::uint64_t file_bytes = writer.data().size() + data;
  if (const auto header = checkpoint::parse_header(writer.data(), file_bytes); header.ok())
    check_header(*header, file_bytes);
  return 0;
}

}  // namespace paceline::fuzz
