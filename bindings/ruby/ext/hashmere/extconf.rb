# frozen_string_literal: true

# Finds libhashmere by pkg-config (set PKG_CONFIG_PATH if it is not installed where pkg-config looks), or with
# --with-hashmere-dir=PREFIX.
# Before mkmf, so that it runs after what mkmf prints at the end: the last line says what is wrong.
problem = nil
at_exit { warn "", problem if problem }
require "mkmf"

dir_config("hashmere")
pkg_config("hashmere")
unless have_header("hashmere.h") && have_library("hashmere", "hm_open", "hashmere.h")
  problem = "libhashmere and hashmere.h were not found: `make install PREFIX=...` in the repository of Hashmere " \
            "installs them; PKG_CONFIG_PATH=PREFIX/lib/pkgconfig says where"
  exit 1
end
# A library outside of the linker's own folders is found at run time where it was found now.
$LDFLAGS.scan(/-L(\S+)/).flatten.uniq.each { |folder| $LDFLAGS << " -Wl,-rpath,#{folder}" if folder.include?("hashmere") || File.exist?("#{folder}/libhashmere.so") }
$CFLAGS << " -std=gnu11 -Wall -Wextra -Wno-unused-parameter -fvisibility=hidden"
$CFLAGS << " -Werror" if enable_config("werror")
create_makefile("hashmere/hashmere_ext")
