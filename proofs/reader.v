(* Finite probability, the reader, and the exchange lemma.

   A state is a table together with the lots that the program draws. Its weight is the probability of the table before the releases, times the probability
   of the lots. The reader knows an event K: what the program published, and what the reader knows of people. The posterior of an event E is the share of
   the weight of K that lies in E. *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Reader.

Variables (R : realFieldType) (S : finType) (weight : S -> R).

Definition mass (K : pred S) : R := \sum_(s | K s) weight s.

Definition posterior (K E : pred S) : R := mass [pred s | K s && E s] / mass K.

Lemma mass_if (K E : pred S) : mass [pred s | K s && E s] = \sum_(s | K s) (if E s then weight s else 0).
Proof. by rewrite /mass big_mkcondr. Qed.

(* A move of K into itself that keeps weights takes the mass of an event to the mass of its preimage. *)
Lemma mass_move (K E : pred S) (move : S -> S) :
  {in K &, injective move} -> (forall s, K s -> K (move s)) -> (forall s, K s -> weight (move s) = weight s) ->
  mass [pred s | K s && E (move s)] = mass [pred s | K s && E s].
Proof.
move=> inj stays keeps; pose A := [set s | K s].
have onto : move @: A = A.
  apply/eqP; rewrite eqEcard card_in_imset ?leqnn ?andbT.
    by apply/subsetP=> _ /imsetP[s + ->]; rewrite !inE; apply: stays.
  by move=> s1 s2; rewrite !inE; apply: inj.
rewrite !mass_if.
have E1 : forall F : S -> R, \sum_(s | K s) F s = \sum_(s in A) F s by move=> F; apply: eq_bigl => s; rewrite inE.
rewrite [RHS]E1 -onto big_imset /=; last by move=> s1 s2; rewrite !inE; apply: inj.
rewrite E1; apply: eq_bigr => s; rewrite inE => Ks.
by rewrite keeps.
Qed.

Section Exchange.

Variables (I : finType) (move : I -> S -> S) (K E : pred S).
Hypothesis injective_moves : forall i, {in K &, injective (move i)}.
Hypothesis moves_stay : forall i s, K s -> K (move i s).
Hypothesis moves_keep : forall i s, K s -> weight (move i s) = weight s.

Lemma mass_moves : #|I|%:R * mass [pred s | K s && E s] = \sum_(s | K s) #|[pred i | E (move i s)]|%:R * weight s.
Proof.
have -> : #|I|%:R * mass [pred s | K s && E s] = \sum_(i : I) mass [pred s | K s && E s].
  by rewrite sumr_const mulr_natl.
rewrite (eq_bigr (fun i => \sum_(s | K s) (if E (move i s) then weight s else 0))); last first.
  move=> i _; rewrite -(mass_move E (injective_moves (i := i)) (moves_stay i) (moves_keep i)) /mass.
  exact: (big_mkcondr).
rewrite exchange_big /=; apply: eq_bigr => s _.
by rewrite -big_mkcond /= sumr_const mulr_natl.
Qed.

(* The exchange lemma, as an upper bound: at most one of the moves of a state is in E. *)
Lemma exchange_mass : (forall s, 0 <= weight s) -> (forall s, K s -> (#|[pred i | E (move i s)]| <= 1)%N) ->
  #|I|%:R * mass [pred s | K s && E s] <= mass K.
Proof.
move=> pos once; rewrite mass_moves; apply: ler_sum => s Ks.
by rewrite -[leRHS]mul1r; apply: ler_wpmul2r; rewrite ?pos // -[leRHS]/(1%:R) ler_nat once.
Qed.

Lemma exchange_mass_exactly : (forall s, K s -> #|[pred i | E (move i s)]| = 1%N) ->
  #|I|%:R * mass [pred s | K s && E s] = mass K.
Proof. by move=> once; rewrite mass_moves; apply: eq_bigr => s Ks; rewrite once // mul1r. Qed.

Hypothesis known : 0 < mass K.

Theorem exchange : (forall s, 0 <= weight s) -> (forall s, K s -> (#|[pred i | E (move i s)]| <= 1)%N) -> (0 < #|I|)%N ->
  posterior K E <= #|I|%:R^-1.
Proof.
move=> pos once some; rewrite /posterior ler_pdivr_mulr // mulrC ler_pdivl_mulr ?ltr0n // mulrC.
exact: exchange_mass.
Qed.

Theorem exchange_exactly : (forall s, K s -> #|[pred i | E (move i s)]| = 1%N) -> posterior K E = #|I|%:R^-1.
Proof.
move=> once; have all := exchange_mass_exactly once.
have some : #|I|%:R != 0 :> R by apply/eqP => no; move: all known; rewrite no mul0r => <-; rewrite ltxx.
rewrite /posterior -all; apply: (mulfI some); rewrite mulfV //.
rewrite mulrA divff // mulf_neq0 //.
by apply/eqP => no; move: all known; rewrite no mulr0 => <-; rewrite ltxx.
Qed.

End Exchange.

(* A bound for each thing that can be seen is a bound for a reader who sees a function of it, or less. *)
Theorem sees_less (O : finType) (see : S -> O) (K E : pred S) (c : R) :
  (forall s, 0 <= weight s) -> 0 < mass K ->
  (forall o, 0 < mass [pred s | K s && (see s == o)] -> posterior [pred s | K s && (see s == o)] E <= c) ->
  posterior K E <= c.
Proof.
move=> pos known each; rewrite /posterior ler_pdivr_mulr //.
rewrite {1}/mass (partition_big see predT) //= [in leRHS]/mass (partition_big see predT) //= mulr_sumr.
apply: ler_sum => o _; rewrite -/(mass _); set k := \sum_(s | _ && (see s == o)) weight s in each *.
have [some|none] := boolP (0 < k).
  have := each o some; rewrite /posterior ler_pdivr_mulr //; apply: le_trans.
  by rewrite /mass le_eqVlt; apply/orP; left; apply/eqP; apply: eq_bigl => s /=; rewrite andbAC.
have k0 : k = 0 by apply/eqP; move: none; rewrite lt0r sumr_ge0 ?andbT ?negbK // => s _; apply: pos.
rewrite k0 mulr0 -k0 /k [leRHS]big_mkcond [leLHS]big_mkcond /=; apply: ler_sum => s _.
by case: (K s); case: (E s); case: (see s == o); rewrite //= ?pos.
Qed.

End Reader.

(* A permutation of the states, applied again and again, is a family of moves. So is a group that acts on them: the posterior is the same for all states of
   an orbit. *)
Section Orbits.

Variables (R : realFieldType) (gT : finGroupType) (G : {group gT}) (S : finType) (to : {action gT &-> S}) (weight : S -> R).
Hypothesis keeps : forall g s, g \in G -> weight (to s g) = weight s.
Hypothesis pos : forall s, 0 <= weight s.

Theorem orbit_uniform (s t : S) : 0 < weight s -> t \in orbit to G s ->
  posterior weight (fun u => u \in orbit to G s) (pred1 t) = #|orbit to G s|%:R^-1.
Proof.
move=> some in_orbit; rewrite /posterior /mass.
have same u : u \in orbit to G s -> weight u = weight s by case/orbitP => g gG <-; apply: keeps.
have -> : \sum_(u in orbit to G s) weight u = #|orbit to G s|%:R * weight s.
  by rewrite (eq_bigr (fun=> weight s)) // sumr_const mulr_natl.
rewrite (big_pred1 t) => [|u]; last by rewrite /= andbC; case: eqP => [->|].
by rewrite same // invfM mulrCA mulfV ?mulr1 ?gt_eqF.
Qed.

End Orbits.
