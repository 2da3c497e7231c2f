//===- event_file.cpp - Curves for TensorBoard ----------------------------===//

#include "event_file.h"

#include "../core/aside_file.h"
#include "genrec_rt/error.h"

#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>

#include <unistd.h>

namespace genrec::rt {

namespace {

//===-- protocol buffers: field number and wire type, then the value -----------===//

void putVarint(std::string &to, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    to.push_back(static_cast<char>(value | 0x80));
  to.push_back(static_cast<char>(value));
}

template <class T> void putBytes(std::string &to, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T)); // little-endian, as the machine
  to.append(bytes, sizeof(T));
}

void putTag(std::string &to, int field, int wireType) {
  putVarint(to, static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wireType));
}

void putInteger(std::string &to, int field, int64_t value) {
  putTag(to, field, 0);
  putVarint(to, static_cast<uint64_t>(value));
}

void putDouble(std::string &to, int field, double value) {
  putTag(to, field, 1);
  putBytes(to, value);
}

void putFloat(std::string &to, int field, float value) {
  putTag(to, field, 5);
  putBytes(to, value);
}

void putText(std::string &to, int field, const std::string &value) {
  putTag(to, field, 2);
  putVarint(to, value.size());
  to += value;
}

/// event.proto: wall_time 1, step 2, file_version 3, summary 5, session_log 7.
std::string beginEvent(int64_t step) {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  std::string event;
  putDouble(event, 1, std::chrono::duration<double>(now).count());
  putInteger(event, 2, step);
  return event;
}

/// A masked checksum, as the record format stores them.
uint32_t masked(uint32_t checksum) { return ((checksum >> 15) | (checksum << 17)) + 0xa282ead8u; }

} // namespace

uint32_t crc32c(const std::string &data) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit)
        value = value >> 1 ^ (value & 1 ? 0x82f63b78u : 0);
      made[i] = value;
    }
    return made;
  }();
  uint32_t checksum = ~0u;
  for (char c : data)
    checksum = checksum >> 8 ^ table[(checksum ^ static_cast<unsigned char>(c)) & 0xff];
  return ~checksum;
}

EventFile::EventFile(const std::string &folder, int64_t afterStep) {
  std::error_code ignored; // opening the file says what is wrong
  std::filesystem::create_directories(folder, ignored);
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  auto now = std::chrono::system_clock::now().time_since_epoch();
  path = folder + "/events.out.tfevents." +
         std::to_string(std::chrono::duration_cast<std::chrono::seconds>(now).count()) + "." +
         host + "." + std::to_string(getpid());
  for (int count = 1; std::filesystem::exists(path); ++count)
    path += "." + std::to_string(count);
  file = std::fopen(path.c_str(), "wb");
  if (!file)
    throwFileError("write", path);
  std::string version = beginEvent(0);
  putText(version, 3, "brain.Event:2");
  write(version);
  if (afterStep > 0) {
    std::string start = beginEvent(afterStep + 1), log;
    putInteger(log, 1, 1); // SessionLog.status START
    putText(start, 7, log);
    write(start);
  }
  flush();
}

EventFile::~EventFile() {
  if (file)
    std::fclose(file);
}

void EventFile::write(const std::string &event) {
  std::string record;
  putBytes(record, static_cast<uint64_t>(event.size()));
  uint32_t ofLength = masked(crc32c(record));
  putBytes(record, ofLength);
  record += event;
  putBytes(record, masked(crc32c(event)));
  if (std::fwrite(record.data(), 1, record.size(), file) != record.size())
    throwFileError("write", path);
}

void EventFile::add(int64_t step, const Scalars &scalars) {
  std::string summary;
  for (const auto &[tag, value] : scalars) {
    if (!std::isfinite(value))
      continue;
    std::string entry; // Summary.Value: tag 1, simple_value 2
    putText(entry, 1, tag);
    putFloat(entry, 2, static_cast<float>(value));
    putText(summary, 1, entry);
  }
  if (summary.empty())
    return;
  std::string event = beginEvent(step);
  putText(event, 5, summary);
  write(event);
}

void EventFile::flush() {
  if (std::fflush(file) != 0)
    throwFileError("write", path);
}

} // namespace genrec::rt
