#include "runtime/checkpoint/manifest.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/status.h"

namespace paceline::checkpoint {

namespace {

using Json = nlohmann::json;

absl::Status bad_field(std::string_view field, std::string_view allowed) {
  return absl::DataLossError(str_cat("manifest: '", field, "' is missing or wrong; allowed: ", allowed));
}

absl::StatusOr<std::int64_t> read_count(const Json& json, const char* field) {
  const auto found = json.find(field);
  const bool good = found != json.end() && found->is_number_unsigned() &&
                    found->get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  if (!good) return bad_field(field, "a whole number >= 0");
  return found->get<std::int64_t>();
}

absl::StatusOr<std::string> read_text(const Json& json, const char* field) {
  const auto found = json.find(field);
  if (found == json.end() || !found->is_string()) return bad_field(field, "a text");
  return found->get<std::string>();
}

absl::StatusOr<std::uint64_t> read_integer_text(const Json& json, const char* field, int base) {
  PL_ASSIGN_OR_RETURN(const std::string text, read_text(json, field));
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) {
    return bad_field(field, str_cat("a 64-bit number to the base ", base, ", as a text"));
  }
  return value;
}

absl::StatusOr<FileEntry> read_file_entry(const Json& json) {
  if (!json.is_object()) return bad_field("files", "objects with name, bytes and crc32c");
  FileEntry entry;
  PL_ASSIGN_OR_RETURN(entry.name, read_text(json, "name"));
  if (entry.name.empty() || entry.name[0] == '.' || entry.name.find('/') != std::string::npos) {
    return bad_field("files.name", "a name without '/', not beginning with '.'");
  }
  PL_ASSIGN_OR_RETURN(const std::int64_t bytes, read_count(json, "bytes"));
  entry.bytes = static_cast<std::uint64_t>(bytes);
  PL_ASSIGN_OR_RETURN(const std::uint64_t crc, read_integer_text(json, "crc32c", 16));
  if (crc > std::numeric_limits<std::uint32_t>::max())
    return bad_field("files.crc32c", "8 hexadecimal digits");
  entry.crc32c = static_cast<std::uint32_t>(crc);
  return entry;
}

}  // namespace

std::string encode_manifest(const Manifest& manifest) {
  const Progress& p = manifest.progress;
  nlohmann::ordered_json json;
  json["format"] = "paceline-checkpoint";
  json["version"] = kManifestVersion;
  json["step"] = p.step;
  json["ledgerPosition"] = p.ledger_position;
  json["scheduleStep"] = p.schedule_step;
  json["seed"] = std::to_string(p.seed);
  json["rngPosition"] = std::to_string(p.rng_position);
  json["specHash"] = p.spec_hash;
  json["files"] = nlohmann::ordered_json::array();
  for (const FileEntry& file : manifest.files) {
    json["files"].push_back({{"name", file.name},
                             {"bytes", file.bytes},
                             {"crc32c", str_cat(absl::Hex(file.crc32c, absl::kZeroPad8))}});
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

absl::StatusOr<Manifest> parse_manifest(std::string_view text) {
  if (text.size() > kMaxManifestBytes) {
    return absl::DataLossError(str_cat("manifest: ", text.size(), " bytes; allowed: ", kMaxManifestBytes));
  }
  const auto shallow = [](int depth, Json::parse_event_t, Json&) { return depth <= 4; };
  const Json json = Json::parse(text.begin(), text.end(), shallow, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object())
    return absl::DataLossError("manifest: not a JSON object (torn?)");
  PL_ASSIGN_OR_RETURN(const std::string format, read_text(json, "format"));
  if (format != "paceline-checkpoint") return bad_field("format", "paceline-checkpoint");
  PL_ASSIGN_OR_RETURN(const std::int64_t version, read_count(json, "version"));
  if (version != kManifestVersion) {
    return absl::UnimplementedError(
        str_cat("manifest: version ", version, "; this Paceline reads version ", kManifestVersion));
  }
  Manifest manifest;
  Progress& p = manifest.progress;
  PL_ASSIGN_OR_RETURN(p.step, read_count(json, "step"));
  PL_ASSIGN_OR_RETURN(p.ledger_position, read_count(json, "ledgerPosition"));
  PL_ASSIGN_OR_RETURN(p.schedule_step, read_count(json, "scheduleStep"));
  PL_ASSIGN_OR_RETURN(p.seed, read_integer_text(json, "seed", 10));
  PL_ASSIGN_OR_RETURN(p.rng_position, read_integer_text(json, "rngPosition", 10));
  PL_ASSIGN_OR_RETURN(p.spec_hash, read_text(json, "specHash"));
  const auto files = json.find("files");
  if (files == json.end() || !files->is_array() || files->empty() || files->size() > kMaxCheckpointFiles) {
    return bad_field("files", str_cat("a list of 1 to ", kMaxCheckpointFiles, " files"));
  }
  for (const Json& file : *files) {
    PL_ASSIGN_OR_RETURN(FileEntry entry, read_file_entry(file));
    const auto same = [&](const FileEntry& other) { return other.name == entry.name; };
    if (std::any_of(manifest.files.begin(), manifest.files.end(), same)) {
      return bad_field("files.name", "a name that comes once");
    }
    manifest.files.push_back(std::move(entry));
  }
  return manifest;
}

}  // namespace paceline::checkpoint
