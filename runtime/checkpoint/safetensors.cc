#include "runtime/checkpoint/safetensors.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/bytes.h"
#include "base/status.h"

namespace paceline::checkpoint {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kAlignment = 8;
constexpr int kMaxJsonDepth = 4;  // {"name": {"shape": [n]}}
constexpr const char* kMetadataKey = "__metadata__";

// Bytes that dims and dtype need, or nothing where they don't fit 63 bits or a dimension is negative.
std::optional<std::uint64_t> bytes_of(DType dtype, std::span<const std::int64_t> dims) {
  std::uint64_t bytes = dtype_bytes(dtype);
  for (const std::int64_t d : dims) {
    if (d < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(d), &bytes)) return std::nullopt;
  }
  if (bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return bytes;
}

absl::Status bad_tensor(std::string_view name, std::string_view what) {
  return absl::DataLossError(str_cat("tensor '", name, "': ", what));
}

// Builds the JSON while it refuses what nlohmann::json would let pass: keys that come twice, deep nesting.
class StrictReader {
 public:
  absl::StatusOr<Json> read(std::string_view text) {
    const auto check = [this](int depth, Json::parse_event_t event, Json& value) {
      if (depth > kMaxJsonDepth) error_ = "JSON nested too deeply";
      if (event == Json::parse_event_t::object_start) keys_.emplace_back();
      if (event == Json::parse_event_t::object_end && !keys_.empty()) keys_.pop_back();
      if (event == Json::parse_event_t::key && !keys_.back().insert(value.get<std::string>()).second) {
        error_ = str_cat("'", value.get<std::string>(), "' comes twice");
      }
      return error_.empty();
    };
    Json json = Json::parse(text.begin(), text.end(), check, /*allow_exceptions=*/false);
    if (!error_.empty()) return absl::DataLossError(str_cat("header: ", error_));
    if (json.is_discarded() || !json.is_object()) return absl::DataLossError("header: not a JSON object");
    return json;
  }

 private:
  std::vector<std::set<std::string>> keys_;
  std::string error_;
};

absl::StatusOr<std::uint64_t> read_offset(const Json& value, std::string_view name) {
  if (!value.is_number_unsigned()) return bad_tensor(name, "data_offsets must be two whole numbers >= 0");
  return value.get<std::uint64_t>();
}

absl::StatusOr<TensorEntry> read_entry(const std::string& name, const Json& json) {
  if (!json.is_object() || json.size() != 3 || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets")) {
    return bad_tensor(name, "must have dtype, shape and data_offsets, and nothing else");
  }
  TensorEntry entry{name};
  const Json& dtype = json["dtype"];
  if (!dtype.is_string()) return bad_tensor(name, "dtype must be a text");
  const auto known = parse_dtype(dtype.get_ref<const std::string&>());
  if (!known) {
    return absl::UnimplementedError(str_cat("tensor '", name, "': dtype ",
                                            dtype.get_ref<const std::string&>(),
                                            " is not supported; allowed: F32, F64, BF16, F16, I32, I64"));
  }
  entry.dtype = *known;
  const Json& shape = json["shape"];
  if (!shape.is_array() || shape.size() > kMaxTensorRank) {
    return bad_tensor(name, str_cat("shape must be a list of at most ", kMaxTensorRank, " numbers"));
  }
  for (const Json& size : shape) {
    const bool fits = size.is_number_unsigned() &&
                      size.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
    if (!fits) return bad_tensor(name, "shape must be whole numbers >= 0");
    entry.dims.push_back(size.get<std::int64_t>());
  }
  const Json& offsets = json["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2)
    return bad_tensor(name, "data_offsets must be two whole numbers >= 0");
  PL_ASSIGN_OR_RETURN(entry.begin, read_offset(offsets[0], name));
  PL_ASSIGN_OR_RETURN(entry.end, read_offset(offsets[1], name));
  const auto bytes = bytes_of(entry.dtype, entry.dims);
  if (entry.end < entry.begin || !bytes || *bytes != entry.end - entry.begin) {
    return bad_tensor(name, str_cat("data_offsets [", entry.begin, ", ", entry.end,
                                    "] don't have the length that dtype and shape say"));
  }
  return entry;
}

absl::StatusOr<Metadata> read_metadata(const Json& json) {
  if (!json.is_object()) return absl::DataLossError("header: __metadata__ must be an object of texts");
  Metadata metadata;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) return absl::DataLossError("header: __metadata__ must be an object of texts");
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

absl::Status check_contiguous(std::span<const TensorEntry> tensors, std::uint64_t data_bytes) {
  std::uint64_t at = 0;
  for (const TensorEntry& tensor : tensors) {
    if (tensor.begin != at) {
      return bad_tensor(tensor.name, str_cat("begins at byte ", tensor.begin, " of the data, ",
                                             tensor.begin < at ? "inside another tensor" : "after a hole",
                                             "; the one before it ends at ", at));
    }
    at = tensor.end;
  }
  if (at == data_bytes) return absl::OkStatus();
  return absl::DataLossError(
      str_cat("the tensors end at byte ", at, " of the data, the file has ", data_bytes, " bytes of data"));
}

}  // namespace

absl::StatusOr<std::string> encode_header(std::span<const TensorView> tensors, const Metadata& metadata) {
  std::vector<TensorShape> shapes;
  shapes.reserve(tensors.size());
  for (const TensorView& tensor : tensors) {
    const auto bytes = bytes_of(tensor.dtype, tensor.dims);
    if (!bytes || *bytes != tensor.data.size()) {
      return absl::InvalidArgumentError(
          str_cat("tensor '", tensor.name, "': ", tensor.data.size(), " bytes don't fit its dims and dtype"));
    }
    shapes.push_back({tensor.name, tensor.dtype, tensor.dims});
  }
  return encode_header_of(shapes, metadata);
}

absl::StatusOr<std::string> encode_header_of(std::span<const TensorShape> tensors, const Metadata& metadata) {
  if (tensors.size() > kMaxTensors) {
    return absl::InvalidArgumentError(str_cat(tensors.size(), " tensors; allowed: at most ", kMaxTensors));
  }
  Json json = Json::object();
  if (!metadata.empty()) json[kMetadataKey] = metadata;
  std::set<std::string_view> names;
  std::uint64_t at = 0;
  for (const TensorShape& tensor : tensors) {
    if (tensor.name == kMetadataKey || !names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(str_cat("tensor '", tensor.name, "': the name is reserved or taken"));
    }
    const auto bytes = bytes_of(tensor.dtype, tensor.dims);
    if (!bytes || tensor.dims.size() > kMaxTensorRank) {
      return absl::InvalidArgumentError(str_cat("tensor '", tensor.name, "': dims that can't be meant"));
    }
    Json& entry = json[tensor.name];
    entry["dtype"] = dtype_name(tensor.dtype);
    entry["shape"] = tensor.dims;
    entry["data_offsets"] = {at, at + *bytes};
    at += *bytes;
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const Json::exception&) {  // a name or a metadata text that isn't UTF-8
    return absl::InvalidArgumentError("tensor names and metadata must be UTF-8");
  }
  text.append((kAlignment - (kLengthBytes + text.size()) % kAlignment) % kAlignment, ' ');
  if (text.size() > kMaxHeaderBytes) {
    return absl::InvalidArgumentError(
        str_cat("a header of ", text.size(), " bytes; allowed: ", kMaxHeaderBytes));
  }
  ByteWriter length;
  length.u64(text.size());
  return std::string(reinterpret_cast<const char*>(length.data().data()), kLengthBytes) + text;
}

absl::StatusOr<SafetensorsHeader> parse_header(std::span<const std::byte> begin, std::uint64_t file_bytes) {
  ByteReader reader(begin);
  const std::uint64_t length = reader.u64();
  if (!reader.ok() || file_bytes < kLengthBytes) {
    return absl::DataLossError(str_cat("a safetensors file begins with 8 bytes, this one has ", file_bytes));
  }
  if (length > kMaxHeaderBytes || length > file_bytes - kLengthBytes || length > reader.remaining()) {
    return absl::DataLossError(str_cat("byte 0: a header of ", length, " bytes; allowed: at most ",
                                       kMaxHeaderBytes, ", and the file has ", file_bytes));
  }
  const auto bytes = reader.bytes(length);
  PL_ASSIGN_OR_RETURN(const Json json,
                      StrictReader().read({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  SafetensorsHeader header;
  header.data_begin = kLengthBytes + length;
  if (json.size() > kMaxTensors + 1) {
    return absl::DataLossError(str_cat("header: ", json.size(), " entries; allowed: at most ", kMaxTensors));
  }
  for (const auto& [name, value] : json.items()) {
    if (name == kMetadataKey) {
      PL_ASSIGN_OR_RETURN(header.metadata, read_metadata(value));
    } else {
      PL_ASSIGN_OR_RETURN(TensorEntry entry, read_entry(name, value));
      header.tensors.push_back(std::move(entry));
    }
  }
  // Empty tensors may stand at the begin of the next one, so the end decides between equal begins.
  std::sort(header.tensors.begin(), header.tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  PL_RETURN_IF_ERROR(check_contiguous(header.tensors, file_bytes - header.data_begin));
  return header;
}

}  // namespace paceline::checkpoint
