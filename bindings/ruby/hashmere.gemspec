# frozen_string_literal: true

require_relative "lib/hashmere/version"

Gem::Specification.new do |gem|
  gem.name = "hashmere"
  gem.version = Hashmere::VERSION
  gem.summary = "One hash table in one file that every process maps"
  gem.description = "A Hash of Strings in shared memory or a file, used by any number of processes at once without a server."
  gem.authors = ["The Hashmere authors"]
  gem.licenses = ["MIT", "Apache-2.0"]
  gem.required_ruby_version = ">= 3.1"
  gem.metadata = { "rubygems_mfa_required" => "true" }
  gem.files = Dir.chdir(__dir__) { Dir["{ext,lib}/**/*.{c,h,rb}", "README.md"] }
  gem.extensions = ["ext/hashmere/extconf.rb"]
end
