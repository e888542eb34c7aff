#pragma once

// Memory that is owned: of the GPU, and of the host where the GPU reads and writes it by itself. Contents are
// undefined at first. Freed by whatever thread; freeing waits for all work of the GPU, so neither is made or
// freed within a step.

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/cuda/context.h"

namespace paceline::cuda {

// An address of the GPU: never followed on the host.
class DeviceBuffer {
 public:
  // 256-byte aligned. RESOURCE_EXHAUSTED, with what was asked for and what is free; zero bytes have no
  // address.
  static absl::StatusOr<DeviceBuffer> create(std::shared_ptr<const Context> context, std::size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : context_(std::move(other.context_)),
        address_(std::exchange(other.address_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;

  void* address() const { return address_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(address_);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  DeviceBuffer(std::shared_ptr<const Context> context, void* address, std::size_t bytes)
      : context_(std::move(context)), address_(address), bytes_(bytes) {}

  std::shared_ptr<const Context> context_;
  void* address_;
  std::size_t bytes_;
};

class PinnedBuffer {
 public:
  // Page-aligned. RESOURCE_EXHAUSTED where the host gives no more.
  static absl::StatusOr<PinnedBuffer> create(std::shared_ptr<const Context> context, std::size_t bytes);
  ~PinnedBuffer();
  PinnedBuffer(PinnedBuffer&& other) noexcept
      : context_(std::move(other.context_)), bytes_(std::exchange(other.bytes_, {})) {}
  PinnedBuffer& operator=(PinnedBuffer&&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }
  template <typename T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }

 private:
  PinnedBuffer(std::shared_ptr<const Context> context, std::span<std::byte> bytes)
      : context_(std::move(context)), bytes_(bytes) {}

  std::shared_ptr<const Context> context_;
  std::span<std::byte> bytes_;
};

// Makes memory that the host has already like a PinnedBuffer's, as long as it lives. The memory outlives it.
class HostPin {
 public:
  // RESOURCE_EXHAUSTED where the host pins no more; ALREADY_EXISTS where a part of it is pinned by another.
  static absl::StatusOr<HostPin> create(std::shared_ptr<const Context> context, std::span<std::byte> memory);
  ~HostPin();
  HostPin(HostPin&& other) noexcept
      : context_(std::move(other.context_)), memory_(std::exchange(other.memory_, {})) {}
  HostPin& operator=(HostPin&&) = delete;

 private:
  HostPin(std::shared_ptr<const Context> context, std::span<std::byte> memory)
      : context_(std::move(context)), memory_(memory) {}

  std::shared_ptr<const Context> context_;
  std::span<std::byte> memory_;
};

}  // namespace paceline::cuda
