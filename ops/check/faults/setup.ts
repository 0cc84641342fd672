import fc from 'fast-check';

/** Whether a property fails is what is asked here; the smallest counterexample, which takes long to find, is not. */
fc.configureGlobal({ ...fc.readConfigureGlobal(), endOnFailure: true });
